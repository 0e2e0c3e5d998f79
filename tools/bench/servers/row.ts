/** All columns of all statements. */
export interface Row {
  [column: string]: unknown;
  username: string;
  owner_name: string;
  slug: string;
  title: string;
  traits: string[];
  earnings: string[];
  created_at: string;
  bought_at: string;
  added_at: string;
  moved_at: string;
  made_at: string;
  updated_at: string;
  published_at: string | null;
  amount: number;
  currency: string;
}
