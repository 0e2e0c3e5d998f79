import { Controller, Get, Req } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access';
import { failure } from '../../platform/http/failure';
import { WebAnswer } from '../../platform/http/answer';
import { type Asset, Assets } from './assets';

class AssetAnswer extends WebAnswer {
  constructor(private readonly asset: Asset) {
    super();
  }

  sendTo(res: Response): void {
    res.setHeader('Content-Type', this.asset.type);
    res.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
    res.end(this.asset.content);
  }
}

@ApiExcludeController()
@Controller('assets')
export class AssetsController {
  constructor(private readonly assets: Assets) {}

  @Get(':name')
  @Public()
  asset(@Req() req: Request): AssetAnswer {
    const asset = this.assets.at(req.path);
    if (!asset) throw failure(404, 'invalid api endpoint');
    return new AssetAnswer(asset);
  }
}
