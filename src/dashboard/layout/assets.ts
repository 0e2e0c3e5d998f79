import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import type { LOGO_EXTENSIONS } from '../../platform/config/setting-rules';
import { Settings } from '../../platform/config/settings';

export class Asset {
  readonly etag: string;
  private gzipped: Buffer | undefined;

  constructor(
    readonly path: string,
    readonly type: string,
    readonly content: Buffer,
  ) {
    // The ETag is weak because it is the same for both encodings. The path contains a hash.
    this.etag = `W/"${path}"`;
  }

  get isText(): boolean {
    return this.type.endsWith('charset=utf-8');
  }

  get compressed(): Buffer {
    return (this.gzipped ??= gzipSync(this.content, { level: constants.Z_BEST_COMPRESSION }));
  }
}

const IMAGE_TYPES: Record<(typeof LOGO_EXTENSIONS)[number], string> = {
  '.svg': 'image/svg+xml; charset=utf-8',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
};
const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  ...IMAGE_TYPES,
};

const ASSET_FOLDER = join(__dirname, 'assets');

/** Covers of the demo store. Their URLs have no hash, because the games of the store contain them. */
export const DEMO_COVERS = Array.from({ length: 9 }, (_, i) => `/assets/cover-${i + 1}.svg`);

/** Styles, scripts and images of the pages. A hash in each name lets browsers cache them indefinitely. */
@Injectable()
export class Assets {
  private readonly byPath = new Map<string, Asset>();
  private readonly unrendered: (() => Asset)[] = [];
  readonly style: Asset;
  readonly script: Asset;
  readonly filesScript: Asset;
  readonly referenceStyle: Asset;
  readonly referenceScript: Asset;
  readonly icon: Asset;
  readonly storeStyle?: Asset;
  readonly storeLogo?: Asset;

  constructor({ STORE_CSS_FILE, STORE_LOGO_FILE }: Settings) {
    this.style = this.addFile(join(ASSET_FOLDER, 'pages.css'));
    this.script = this.addFile(join(ASSET_FOLDER, 'pages.js'));
    this.filesScript = this.addFile(join(ASSET_FOLDER, 'files.js'));
    this.referenceStyle = this.addFile(join(ASSET_FOLDER, 'reference.css'));
    this.referenceScript = this.addFile(join(ASSET_FOLDER, 'reference.js'));
    this.icon = this.addFile(join(ASSET_FOLDER, 'icon.svg'));
    for (const path of DEMO_COVERS)
      this.byPath.set(
        path,
        new Asset(path, TYPES['.svg']!, readFileSync(join(ASSET_FOLDER, basename(path)))),
      );
    if (STORE_CSS_FILE) this.storeStyle = this.addFile(STORE_CSS_FILE);
    if (STORE_LOGO_FILE) this.storeLogo = this.addFile(STORE_LOGO_FILE);
  }

  at(path: string): Asset | undefined {
    // The path may come from a page of another replica.
    if (!this.byPath.has(path)) for (const render of this.unrendered.splice(0)) render();
    return this.byPath.get(path);
  }

  /** A file that is rendered when it is first needed. */
  rendered(name: string, render: () => string): () => Asset {
    let asset: Asset | undefined;
    const once = () => (asset ??= this.add(name, Buffer.from(render())));
    this.unrendered.push(once);
    return once;
  }

  private addFile(file: string): Asset {
    return this.add(basename(file), readFileSync(file));
  }

  private add(file: string, content: Buffer): Asset {
    const extension = extname(file).toLowerCase();
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
    const name = basename(file, extname(file)).replace(/[^\w-]/g, '') || 'file';
    const asset = new Asset(`/assets/${name}-${hash}${extension}`, TYPES[extension]!, content);
    this.byPath.set(asset.path, asset);
    return asset;
  }
}
