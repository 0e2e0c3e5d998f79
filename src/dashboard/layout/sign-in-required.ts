/** Thrown if a page needs a session: redirects to the sign-in page, and from there back. */
export class SignInRequired extends Error {
  constructor(readonly return_to?: string) {
    super('sign-in required');
  }

  get location(): string {
    return this.return_to ? `/login?return_to=${encodeURIComponent(this.return_to)}` : '/login';
  }
}
