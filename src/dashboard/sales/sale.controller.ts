import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { ERASED_ADDRESS } from '../../users/erased-users';
import { SalesService } from '../../purchases/sales/sales.service';
import { WebhookAttempts } from '../../operator/webhooks/webhook-attempts.service';
import { Settings } from '../../platform/config/settings';
import { forbidden } from '../../auth/access/errors';
import { apiError } from '../../platform/errors/api-error';
import { KeyPages } from '../../platform/server/key-pages';
import { Form } from '../../platform/input/form';
import { type SellerSale, SellerSalesService } from '../../purchases/sales/seller-sales.service';
import { seeOther, SALES_PATH } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { buyerPage, type Refunder, refundPage, salePage, searchPage } from './sale.page';

const MAX_TERM = 320;

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

  /** For a reload of the URL of a search. */
  @Get('search')
  emptySearch() {
    return searchPage('', []);
  }

  /** A POST, so that no email address is in a URL. */
  @Post('search')
  async search(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const term = (form.text('term') ?? '').trim().slice(0, MAX_TERM);
    const found = term === '' ? [] : await this.sellerSales.search(visitor.user.id, term);
    if (found.length === 1) return seeOther(`${SALES_PATH}/${found[0]!.id}`);
    return searchPage(term, found);
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
      refunder: this.refunderOf(sale),
      store: this.settings.STORE_NAME,
    });
  }

  @Get(':purchase_id/buyer')
  async buyer(@PathId('purchase_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const sale = await this.sale(id, visitor);
    // Erased buyers share this email address: its sales are not those of one person.
    if (sale.email === ERASED_ADDRESS) throw apiError(404, 'The buyer was erased.');
    const sales = await this.sellerSales.ofBuyer(visitor.user.id, sale.email);
    const keys = await this.sellerSales.keysOfBuyer(visitor.user.id, sale.email);
    return buyerPage(sale, sales, keys, this.pages);
  }

  @Get(':purchase_id/refund')
  async confirm(@PathId('purchase_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return refundPage(visitor, await this.refundable(id, visitor));
  }

  @Post(':purchase_id/refund')
  async refund(
    @PathId('purchase_id') id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.refundable(id, visitor);
    const keep_keys = form.isChecked('keep_keys');
    await this.sales.refund({ purchase_id: id, keep_keys }, visitor.by);
    return seeOther(`${SALES_PATH}/${id}`, { done: `Sale ${id} was refunded.` });
  }

  private async sale(id: number, visitor: SignedInVisitor): Promise<SellerSale> {
    const sale = await this.sellerSales.sale(visitor.user.id, id);
    if (!sale) throw apiError(404, 'This sale doesn’t exist.');
    return sale;
  }

  private async refundable(id: number, visitor: SignedInVisitor): Promise<SellerSale> {
    const sale = await this.sale(id, visitor);
    if (this.refunderOf(sale) !== 'seller') throw forbidden('You can’t refund this sale. Contact the store.');
    return sale;
  }

  private refunderOf({ own_games, all_games }: SellerSale): Refunder {
    if (!this.settings.SELLERS_MAY_REFUND) return 'store';
    return own_games === all_games ? 'seller' : 'store, as games are of others';
  }
}
