import { Exclude, Expose, plainToInstance, Transform, Type } from 'class-transformer';

const HOST = 'gamewharf.example';
// Built from others, and used by others.
const Shown = () => Expose({ toPlainOnly: true });
const Used = () => Expose({ toClassOnly: true });
const Formatted = (format: (iso: string) => string) =>
  Transform(({ value }) => (value === null ? null : format(new Date(value as string).toISOString())));
const Modern = () => Formatted((iso) => `${iso.slice(0, 19)}Z`);
const Legacy = () => Formatted((iso) => iso.slice(0, 19).replace('T', ' '));

function money(amount: number, currency: string): string {
  const format = new Intl.NumberFormat('en-US', { style: 'currency', currency });
  return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits!);
}

@Exclude()
export class UserResponse {
  @Expose() id: number;
  @Expose() username: string;
  @Transform(({ obj }: { obj: UserResponse }) => obj.display_name ?? obj.username)
  @Expose()
  display_name: string;
  @Expose() gamer: boolean;
  @Expose() developer: boolean;
  @Expose() press_user: boolean;
  @Shown() get url(): string {
    return `https://${this.username}.${HOST}`;
  }
  @Expose() cover_url: string | null;
}

@Exclude()
class EarningResponse {
  @Expose() currency: string;
  @Shown() get amount_formatted(): string {
    return money(this.amount, this.currency);
  }
  @Expose() amount: number;
}

@Exclude()
class BaseGame {
  @Expose() id: number;
  @Expose() title: string;
  @Expose() short_text: string | null;
  @Used() user: { username: string };
  @Used() slug: string;
  @Shown() get url(): string {
    return `https://${this.user.username}.${HOST}/${this.slug}`;
  }
  @Expose() cover_url: string | null;
  @Expose() type: string;
  @Expose() min_price: number;
}

@Exclude()
class CountedGame extends BaseGame {
  @Shown() get published(): boolean {
    return this.published_at !== null;
  }
  @Used() published_at: Date | null;
  @Expose() views_count: number;
  @Expose() downloads_count: number;
  @Expose() purchases_count: number;
  @Expose() @Type(() => EarningResponse) earnings: EarningResponse[];
}

@Exclude()
export class GameResponse extends CountedGame {
  @Expose() classification: string;
  @Expose() traits: string[];
  @Expose() @Modern() declare published_at: Date | null;
  @Expose() @Modern() created_at: Date;
}

@Exclude()
export class LegacyGameResponse extends CountedGame {
  @Used() traits: string[];
  @Shown() get p_android(): boolean {
    return this.traits.includes('p_android');
  }
  @Shown() get p_linux(): boolean {
    return this.traits.includes('p_linux');
  }
  @Shown() get p_osx(): boolean {
    return this.traits.includes('p_osx');
  }
  @Shown() get p_windows(): boolean {
    return this.traits.includes('p_windows');
  }
  @Expose() @Legacy() declare published_at: Date | null;
  @Expose() @Legacy() created_at: Date;
}

@Exclude()
class GameUser {
  @Expose() id: number;
  @Expose() username: string;
  @Transform(({ obj }: { obj: GameUser }) => obj.display_name ?? obj.username)
  @Expose()
  display_name: string;
  @Shown() get url(): string {
    return `https://${this.username}.${HOST}`;
  }
  @Expose() cover_url: string | null;
}

@Exclude()
class EmbeddedGame extends BaseGame {
  @Expose() classification: string;
  @Expose() traits: string[];
  @Expose() @Modern() published_at: Date | null;
  @Expose() @Modern() created_at: Date;
}

@Exclude()
export class GameWithUserResponse extends EmbeddedGame {
  @Expose() @Type(() => GameUser) declare user: GameUser;
}

@Exclude()
export class OwnedKeyResponse {
  @Expose() id: number;
  @Expose() game_id: number;
  @Expose() purchase_id: number | null;
  @Expose() @Modern() created_at: Date;
  @Expose() @Modern() updated_at: Date;
  @Expose() downloads: number;
  @Expose() @Type(() => GameWithUserResponse) game: GameWithUserResponse;
}

@Exclude()
class BuildResponse {
  @Expose() id: number;
  @Expose() upload_id: number;
  @Expose() game_id: number;
  @Expose() parent_build_id: number;
  @Expose() version: number;
  @Expose() user_version: string | null;
  @Expose() state: string;
  @Expose() @Modern() created_at: Date;
  @Expose() @Modern() updated_at: Date;
}

@Exclude()
export class UploadResponse {
  @Expose() id: number;
  @Expose() game_id: number;
  @Expose() position: number;
  @Expose() type: string;
  @Expose() traits: string[];
  @Expose() filename: string;
  @Expose() display_name: string | null;
  @Expose() @Modern() created_at: Date;
  @Expose() @Modern() updated_at: Date;
  @Shown() get storage(): string {
    return this.external_url !== null ? 'external' : this.build === null ? 'hosted' : 'build';
  }
  @Used() external_url: string | null;
  @Shown() get host(): string | undefined {
    return this.external_url === null ? undefined : new URL(this.external_url).host;
  }
  @Expose() size: number;
  @Expose() md5_hash: string | null;
  @Shown() get build_id(): number | undefined {
    return this.build?.id;
  }
  @Transform(({ value }: { value: string | null }) => value ?? undefined)
  @Expose()
  channel_name?: string;
  @Transform(({ value }: { value: BuildResponse | null }) => value ?? undefined, { toPlainOnly: true })
  @Expose()
  @Type(() => BuildResponse)
  build: BuildResponse | null;
}

@Exclude()
export class DownloadKeyResponse {
  @Expose() id: number;
  @Expose() @Modern() created_at: Date;
  @Expose() downloads: number;
  @Expose() key: string;
  @Expose() game_id: number;
  @Expose() @Type(() => UserResponse) owner?: UserResponse;
}

@Exclude()
export class PurchaseResponse {
  @Expose() id: number;
  @Expose() donation: boolean;
  @Expose() email: string;
  @Expose() @Modern() created_at: Date;
  @Expose() source: string;
  @Expose() currency: string;
  @Used() amount: number;
  @Shown() get price(): string {
    return money(this.amount, this.currency);
  }
  @Expose() sale_rate: number;
  @Expose() quantity: number;
  @Expose() status: string;
  @Expose() purchase_type: string;
  @Expose() game_id: number | number[];
}

@Exclude()
export class CollectionResponse {
  @Expose() id: number;
  @Expose() title: string;
  @Shown() get url(): string {
    const slug = this.title.toLowerCase().replace(/[^a-z0-9]+/g, '-');
    return `https://${HOST}/c/${this.id}/${slug}`;
  }
  @Expose() user_id: number;
  @Expose() games_count: number;
  @Expose() private: boolean;
  @Expose() description: string | null;
  @Expose() layout: string;
  @Expose() has_game?: boolean;
  @Expose() @Modern() created_at: Date;
  @Expose() @Modern() updated_at: Date;
}

@Exclude()
export class EntryResponse {
  @Expose() collection_id: number;
  @Expose() game_id: number;
  @Expose() position: number;
  @Expose() blurb: string | null;
  @Expose() user_id: number;
  @Expose() @Modern() created_at: Date;
  @Expose() @Type(() => EmbeddedGame) game: EmbeddedGame;
}

export const answered = <HttpResponse>(type: new () => HttpResponse, value: object) =>
  plainToInstance(type, value);
