import { Controller, Get, Param, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';
import { SalesService } from '../../purchases/sales/sales.service';
import { WebhookAttempts } from '../../operator/webhooks/webhook-attempts.service';
import { Settings } from '../../platform/config/settings';
import { forbidden } from '../../auth/access/errors';
import { apiError } from '../../platform/errors/api-error';
import { KeyPages } from '../../platform/server/key-pages';
import { Form, withQuery } from '../../platform/input/form';
import { type SellerSale, SellerSalesService } from '../../purchases/sales/seller-sales.service';
import { seeOther, SALES_PATH } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { keyIn } from '../library/library.controller';
import { keysPath, salePath } from './sales-paths';
import { buyerPage, type Refunder, refundPage, salePage, searchPage } from './sale.page';

const SEARCH_PATH = `${SALES_PATH}/search`;
// A link of a key, or an email address.
const MAX_TERM = 700;

/** One sale and its buyer, for sellers who can edit one of its games, and the search for sales. */
@Pages()
@SignedIn()
@Controller('user/settings/sales')
export class SaleController {
  constructor(
    private readonly sellerSales: SellerSalesService,
    private readonly sales: SalesService,
    private readonly attempts: WebhookAttempts,
    private readonly settings: Settings,
    private readonly pages: KeyPages,
  ) {}

  @Get('search')
  emptySearch() {
    return searchPage('', []);
  }

  /**
   * The search is a POST, so that no email address is in a URL. The URL of its results works only in this
   * session.
   */
  @Post('search')
  search(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const term = (form.text('term') ?? '').trim().slice(0, MAX_TERM);
    return seeOther(term === '' ? SEARCH_PATH : `${SEARCH_PATH}/${visitor.encrypt({ term })}`);
  }

  @Get('search/:encrypted')
  async results(@Param('encrypted') encrypted: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const { term } = visitor.decrypt<{ term?: string }>(encrypted) ?? {};
    if (term === undefined) return seeOther(SEARCH_PATH);
    const seller_id = visitor.user.id;
    const key = await this.sellerSales.keyWithText(seller_id, keyIn(term));
    if (key) return seeOther(key.purchase_id === null ? keyPath(key) : salePath(key.purchase_id));
    const found = await this.sellerSales.search(seller_id, term);
    return found.length === 1 ? seeOther(salePath(found[0]!.id)) : searchPage(term, found);
  }

  @Get(':purchase_id')
  async show(@PathId('purchase_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const sale = await this.sale(id, visitor);
    const deliveries = await this.attempts.findBySubject(visitor.user.id, {
      subject_type: 'purchase',
      subject_id: sale.id,
    });
    return salePage({
      sale,
      pages: this.pages,
      deliveries,
      refunder: this.findRefunder(sale),
      store: this.settings.STORE_NAME,
    });
  }

  @Get(':purchase_id/buyer')
  async buyer(@PathId('purchase_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const sale = await this.sale(id, visitor);
    // Erased buyers share this email address: its sales are not those of one person.
    if (sale.email === ERASED_ADDRESS) throw apiError(404, 'The buyer was erased.');
    const [sales, totals, keys] = await Promise.all([
      this.sellerSales.ofPerson(visitor.user.id, sale),
      this.sellerSales.buyerTotals(visitor.user.id, sale),
      this.sellerSales.keysOfPerson(visitor.user.id, sale),
    ]);
    return buyerPage({ sale, totals, sales, keys, pages: this.pages });
  }

  @Get(':purchase_id/refund')
  async confirm(@PathId('purchase_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const sale = await this.refundable(id, visitor);
    return sale.status === 'refunded' ? alreadyRefunded(id) : refundPage(visitor, sale);
  }

  @Post(':purchase_id/refund')
  async refund(
    @PathId('purchase_id') id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.refundable(id, visitor);
    const keep_keys = form.isChecked('keep_keys');
    const isNew = await this.sales.refundNow({ purchase_id: id, keep_keys }, visitor.by);
    return isNew ? seeOther(salePath(id), { message: `Sale ${id} was refunded.` }) : alreadyRefunded(id);
  }

  private async sale(id: number, visitor: SignedInVisitor): Promise<SellerSale> {
    const sale = await this.sellerSales.sale(visitor.user.id, id);
    if (!sale) throw apiError(404, 'This sale doesn’t exist.');
    return sale;
  }

  private async refundable(id: number, visitor: SignedInVisitor): Promise<SellerSale> {
    const sale = await this.sale(id, visitor);
    if (this.findRefunder(sale) !== 'seller')
      throw forbidden('You can’t refund this sale. Contact the store.');
    return sale;
  }

  private findRefunder({ own_games, all_games }: SellerSale): Refunder {
    if (!this.settings.SELLERS_MAY_REFUND) return 'store';
    return own_games === all_games ? 'seller' : 'store-because-shared';
  }
}

const alreadyRefunded = (id: number) =>
  seeOther(salePath(id), { message: `Sale ${id} had already been refunded. Nothing was changed.` });

/** The page with a key that came without a purchase. */
const keyPath = ({ id, game_id }: { id: number; game_id: number }) =>
  withQuery(keysPath(game_id), { from: String(id), to: String(id) });
