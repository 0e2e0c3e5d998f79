import { formMessage, type Message } from './ask';
import { headerOf } from './client';
import { excerpt, Finding } from './oracles';
import type { Answered, Target } from './target';

/** A browser of somebody who is signed in. */
export class Session {
  /** Which replica is asked next. */
  replica = 0;
  private cookie = '';
  private formToken = '';

  constructor(private readonly target: Target) {}

  async signIn(username: string, password: string): Promise<this> {
    await this.get('/login');
    const { answer } = await this.post('/login', { username, password });
    if (answer.status !== 303) throw new Finding('model', 'a user cannot sign in', excerpt(answer));
    // The cookie is another one now, and so is the token that belongs to it.
    await this.get('/user/settings/api-keys');
    return this;
  }

  async get(path: string, showsCredential = false): Promise<Answered> {
    const answered = await this.send({ method: 'GET', path, headers: [] }, showsCredential);
    this.formToken = /name="form_token" value="([^"]*)"/.exec(answered.answer.body)?.[1] ?? this.formToken;
    return answered;
  }

  /** A form of ours; `form_token` may be given to send another one. */
  post(path: string, fields: Record<string, string>): Promise<Answered> {
    return this.send(formMessage(path, { form_token: this.formToken, ...fields }));
  }

  private async send(message: Message, makesCredential = false): Promise<Answered> {
    const headers: Message['headers'] = [['Accept', 'text/html']];
    if (this.cookie) headers.push(['Cookie', this.cookie]);
    const page = message.path.split('?')[0]!.replace(/\/(\d+|fuzz-[\w-]+)(?=\/|$)/g, '/*');
    const answered = await this.target.send(
      { ...message, headers: [...headers, ...message.headers] },
      { makesCredential, page },
      this.replica,
    );
    const cookie = headerOf(answered.answer, 'set-cookie')?.split(';')[0];
    if (cookie !== undefined) this.cookie = cookie;
    return answered;
  }
}
