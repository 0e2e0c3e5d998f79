import type { MigrationInterface, QueryRunner } from 'typeorm';

export class OauthTokens20261124800900 implements MigrationInterface {
  name = 'OauthTokens20261124800900';

  async up(db: QueryRunner) {
    // Tokens that descend from one code share a family_id, so that reuse of a stolen one revokes all.
    await db.query(`
      CREATE TABLE oauth_codes (
        code_hash bytea CONSTRAINT oauth_codes_pkey PRIMARY KEY,
        grant_id bigint NOT NULL CONSTRAINT oauth_codes_grant_id_fkey REFERENCES oauth_grants ON DELETE CASCADE,
        scopes text[] NOT NULL,
        redirect_uri text,
        code_challenge text,
        family_id uuid NOT NULL,
        expires_at timestamptz NOT NULL,
        used_at timestamptz,
        CONSTRAINT oauth_codes_code_hash_check CHECK (octet_length(code_hash) = 32)
      );
      CREATE INDEX oauth_codes_grant_id_idx ON oauth_codes (grant_id);
      CREATE INDEX oauth_codes_expires_at_idx ON oauth_codes (expires_at);

      CREATE TABLE oauth_refresh_tokens (
        token_hash bytea CONSTRAINT oauth_refresh_tokens_pkey PRIMARY KEY,
        grant_id bigint NOT NULL
          CONSTRAINT oauth_refresh_tokens_grant_id_fkey REFERENCES oauth_grants ON DELETE CASCADE,
        family_id uuid NOT NULL,
        scopes text[] NOT NULL,
        api_key_id bigint CONSTRAINT oauth_refresh_tokens_api_key_id_fkey REFERENCES api_keys ON DELETE SET NULL,
        expires_at timestamptz NOT NULL,
        used_at timestamptz,
        successor_hash bytea,
        -- The response to the exchange of this token, sealed with the token itself, for a client that did not receive it.
        answer bytea,
        family_ends_at timestamptz NOT NULL DEFAULT now() + interval '180 days',
        CONSTRAINT oauth_refresh_tokens_token_hash_check CHECK (octet_length(token_hash) = 32)
      );
      CREATE INDEX oauth_refresh_tokens_grant_id_idx ON oauth_refresh_tokens (grant_id);
      CREATE INDEX oauth_refresh_tokens_family_id_idx ON oauth_refresh_tokens (family_id);
      CREATE INDEX oauth_refresh_tokens_api_key_id_idx ON oauth_refresh_tokens (api_key_id);
      CREATE INDEX oauth_refresh_tokens_expires_at_idx ON oauth_refresh_tokens (expires_at);

      CREATE TABLE oauth_device_requests (
        device_code_hash bytea CONSTRAINT oauth_device_requests_pkey PRIMARY KEY,
        user_code text NOT NULL,
        client_id text NOT NULL
          CONSTRAINT oauth_device_requests_client_id_fkey REFERENCES oauth_applications ON DELETE CASCADE,
        scopes text[] NOT NULL,
        code_challenge text,
        interval_seconds integer NOT NULL,
        polled_at timestamptz,
        expires_at timestamptz NOT NULL,
        denied_at timestamptz,
        grant_id bigint CONSTRAINT oauth_device_requests_grant_id_fkey REFERENCES oauth_grants ON DELETE CASCADE,
        CONSTRAINT oauth_device_requests_device_code_hash_check CHECK (octet_length(device_code_hash) = 32)
      );
      CREATE UNIQUE INDEX oauth_device_requests_user_code_key ON oauth_device_requests (user_code);
      CREATE INDEX oauth_device_requests_client_id_idx ON oauth_device_requests (client_id);
      CREATE INDEX oauth_device_requests_grant_id_idx ON oauth_device_requests (grant_id);
      CREATE INDEX oauth_device_requests_expires_at_idx ON oauth_device_requests (expires_at);
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      DROP TABLE oauth_device_requests;
      DROP TABLE oauth_refresh_tokens;
      DROP TABLE oauth_codes;
    `);
  }
}
