import { Injectable } from '@nestjs/common';

/** The demo data on the pages: a developer's account and key, and a game with a buyer and a build. */
export interface DemoAccess {
  api_key: string;
  username: string;
  /** Undefined if the developer's password was changed. */
  password?: string;
  game_id: number;
  slug: string;
  buyer_email: string;
  channel_name: string;
  /** Null if the game has no file. */
  upload_id: number | null;
}

/** Set if this process serves the demo store. */
@Injectable()
export class Demo {
  access: DemoAccess | undefined;
}
