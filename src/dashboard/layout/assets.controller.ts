import { Controller, Get, Req } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { apiError } from '../../platform/errors/api-error';
import { matchesEtag, WebResponse } from '../../platform/output/response';
import { type Asset, Assets } from './assets';

class AssetResponse extends WebResponse {
  constructor(private readonly asset: Asset) {
    super();
  }

  sendTo(res: Response): void {
    const { type, etag, content } = this.asset;
    res.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
    res.setHeader('ETag', etag);
    res.vary('Accept-Encoding');
    if (matchesEtag(res.req.headers['if-none-match'], etag)) {
      res.statusCode = 304;
      res.end();
      return;
    }
    res.setHeader('Content-Type', type);
    const isCompressed = this.asset.isText && res.req.acceptsEncodings('gzip') === 'gzip';
    if (isCompressed) res.setHeader('Content-Encoding', 'gzip');
    const body = isCompressed ? this.asset.compressed : content;
    res.setHeader('Content-Length', body.length);
    res.end(body);
  }
}

@ApiExcludeController()
@Controller('assets')
export class AssetsController {
  constructor(private readonly assets: Assets) {}

  @Get(':name')
  @Public()
  asset(@Req() req: Request): AssetResponse {
    const asset = this.assets.at(req.path);
    if (!asset) throw apiError(404, 'invalid api endpoint');
    return new AssetResponse(asset);
  }
}
