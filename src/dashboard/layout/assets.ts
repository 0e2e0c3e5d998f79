import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { Settings } from '../../platform/config/settings';
import { OperatorError } from '../../platform/config/operator-error';

export interface Asset {
  path: string;
  type: string;
  content: Buffer;
}

const IMAGE_TYPES: Record<string, string> = {
  '.svg': 'image/svg+xml; charset=utf-8',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
};
const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  ...IMAGE_TYPES,
};

const ASSET_FOLDER = join(__dirname, 'assets');

/** Styles, scripts and images of the pages. A hash in each name lets browsers cache them for ever. */
@Injectable()
export class Assets {
  private readonly byPath = new Map<string, Asset>();
  readonly style: Asset;
  readonly script: Asset;
  readonly referenceStyle: Asset;
  readonly referenceScript: Asset;
  readonly icon: Asset;
  readonly storeStyle?: Asset;
  readonly storeLogo?: Asset;

  constructor({ STORE_CSS_FILE, STORE_LOGO_FILE }: Settings) {
    this.style = this.add(join(ASSET_FOLDER, 'pages.css'));
    this.script = this.add(join(ASSET_FOLDER, 'pages.js'));
    this.referenceStyle = this.add(join(ASSET_FOLDER, 'reference.css'));
    this.referenceScript = this.add(join(ASSET_FOLDER, 'reference.js'));
    this.icon = this.add(join(ASSET_FOLDER, 'icon.svg'));
    if (STORE_CSS_FILE) this.storeStyle = this.add(STORE_CSS_FILE, 'STORE_CSS_FILE', ['.css']);
    if (STORE_LOGO_FILE)
      this.storeLogo = this.add(STORE_LOGO_FILE, 'STORE_LOGO_FILE', Object.keys(IMAGE_TYPES));
  }

  at(path: string): Asset | undefined {
    return this.byPath.get(path);
  }

  private add(file: string, setting?: string, extensions?: string[]): Asset {
    const extension = extname(file).toLowerCase();
    if (extensions && !extensions.includes(extension))
      throw new OperatorError(`${setting} must name a file that ends in ${extensions.join(', ')}.`);
    const content = read(file, setting);
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
    const name = basename(file, extname(file)).replace(/[^\w-]/g, '') || 'file';
    const asset = { path: `/assets/${name}-${hash}${extension}`, type: TYPES[extension]!, content };
    this.byPath.set(asset.path, asset);
    return asset;
  }
}

function read(file: string, setting?: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if (!setting) throw error;
    throw new OperatorError(
      `${setting} names a file that cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
}
