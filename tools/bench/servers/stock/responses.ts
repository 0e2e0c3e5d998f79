import { Exclude, Expose, plainToInstance, Transform, Type } from 'class-transformer';

const HOST = 'gamewharf.example';
// A property is `Shown` if it is built from others, and `Used` if others are built from it.
const Shown = () => Expose({ toPlainOnly: true });
const Used = () => Expose({ toClassOnly: true });
const Formatted = (format: (iso: string) => string) =>
  Transform(({ value }) => (value === null ? null : format(new Date(value as string).toISOString())));
const Modern = () => Formatted((iso) => `${iso.slice(0, 19)}Z`);

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
export class GameResponse extends BaseGame {
  @Shown() get published(): boolean {
    return this.published_at !== null;
  }
  @Expose() @Modern() published_at: Date | null;
  @Expose() @Modern() created_at: Date;
  @Expose() classification: string;
  @Expose() traits: string[];
  @Expose() views_count: number;
  @Expose() downloads_count: number;
  @Expose() purchases_count: number;
  @Expose() @Type(() => EarningResponse) earnings: EarningResponse[];
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
  @Expose() user_id: number;
  @Expose() @Type(() => GameUser) declare user: GameUser;
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
