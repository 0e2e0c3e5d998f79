import { withQuery } from '../../platform/input/form';
import { SALES_PATH } from '../layout/layout';

const of = (path: string) => (game?: number | string) => withQuery(path, { game: game?.toString() });

export const BUYERS_PATH = '/user/settings/buyers';
export const FIGURES_PATH = `${SALES_PATH}/figures`;

/** The pages about sales, of all games or of one. */
export const salesPath = of(SALES_PATH);
const figuresPath = of(FIGURES_PATH);
export const buyersPath = of(BUYERS_PATH);

/** The pages about the same sales. */
export const SALES_VIEWS = {
  sales: ['Sales', salesPath],
  figures: ['Figures', figuresPath],
  buyers: ['Buyers', buyersPath],
} as const;

export const salePath = (purchase_id: number) => `${SALES_PATH}/${purchase_id}`;
export const buyerPath = (purchase_id: number) => `${salePath(purchase_id)}/buyer`;

/** The download keys of a game that came without a purchase. */
export const keysPath = (game_id: number) => `/user/settings/games/${game_id}/keys`;
