import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds builds that upload tools push, with their files, jobs and events, and the parts of files that are
 * being uploaded. The trigger also numbers builds that replicas of 0.1.0 or an import create.
 */
export class PushedBuilds20261129100000 implements MigrationInterface {
  name = 'PushedBuilds20261129100000';

  async up(db: QueryRunner) {
    await db.query(`
      ALTER TABLE builds ADD version integer NOT NULL DEFAULT 0, ADD hidden boolean NOT NULL DEFAULT false,
        ADD parent_build_id bigint, ADD source text, ADD metadata text, ADD launch_analysis text, ADD error text,
        ADD expires_at timestamptz;

      -- Numbers the builds of channels from these IDs on. Locks in a fixed number of buckets: an import can have more
      -- channels than the server has locks. SET search_path, because restoring rows from a dump runs without one.
      CREATE FUNCTION builds_number(game_ids bigint[], channel_names text[], first_ids bigint[]) RETURNS void
        LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock(7104201, bucket) FROM (
          SELECT DISTINCT hashtext(game_id || ' ' || channel_name) & 63 AS bucket
          FROM unnest(game_ids, channel_names) AS c (game_id, channel_name) ORDER BY 1) locked;
        -- A new snapshot, which contains what others committed while this transaction waited.
        UPDATE builds b SET version = numbered.version
        FROM unnest(game_ids, channel_names, first_ids) AS first (game_id, channel_name, id)
        CROSS JOIN LATERAL (
          SELECT o.id, row_number() OVER (ORDER BY o.id) + (
            SELECT count(*) FROM builds e
            WHERE e.game_id = first.game_id AND e.channel_name = first.channel_name AND e.id < first.id) AS version
          FROM builds o
          WHERE o.game_id = first.game_id AND o.channel_name = first.channel_name AND o.id >= first.id) numbered
        WHERE b.id = numbered.id AND b.version <> numbered.version;
      END $$;
      CREATE FUNCTION builds_set_versions() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        PERFORM builds_number(array_agg(game_id), array_agg(channel_name), array_agg(id)) FROM (
          SELECT game_id, channel_name, min(id) AS id FROM new_builds GROUP BY 1, 2) first
        HAVING count(*) > 0;
        RETURN NULL;
      END $$;
      CREATE FUNCTION builds_set_versions_of_moved() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
      BEGIN
        PERFORM builds_number(array_agg(game_id), array_agg(channel_name), array_agg(id)) FROM (
          SELECT c.game_id, c.channel_name, min(c.id) AS id FROM old_builds o JOIN new_builds n USING (id)
          CROSS JOIN LATERAL (VALUES (o.game_id, o.channel_name, id), (n.game_id, n.channel_name, id))
            AS c (game_id, channel_name, id)
          WHERE (n.game_id, n.channel_name) IS DISTINCT FROM (o.game_id, o.channel_name) GROUP BY 1, 2) first
        HAVING count(*) > 0;
        RETURN NULL;
      END $$;
      CREATE TRIGGER builds_set_versions_of_new AFTER INSERT ON builds REFERENCING NEW TABLE AS new_builds
        FOR EACH STATEMENT EXECUTE FUNCTION builds_set_versions();
      CREATE TRIGGER builds_set_versions_of_moved AFTER UPDATE ON builds
        REFERENCING OLD TABLE AS old_builds NEW TABLE AS new_builds
        FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION builds_set_versions_of_moved();

      -- The archive of a build has the ID of the build, so the IDs of files are from the sequence of builds.
      CREATE TABLE build_files (
        id bigint CONSTRAINT build_files_pkey PRIMARY KEY,
        build_id bigint NOT NULL CONSTRAINT build_files_build_id_fkey REFERENCES builds ON DELETE CASCADE,
        type text NOT NULL,
        sub_type text NOT NULL DEFAULT 'default',
        state text NOT NULL DEFAULT 'created',
        size bigint,
        file_key text,
        session_id uuid,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT build_files_type_check CHECK (type IN ('patch', 'signature')),
        CONSTRAINT build_files_sub_type_check CHECK (sub_type = 'default'),
        CONSTRAINT build_files_state_check CHECK (state IN ('created', 'uploaded')),
        CONSTRAINT build_files_size_check CHECK (size >= 0),
        CONSTRAINT build_files_file_key_check CHECK (file_key IS NULL OR size IS NOT NULL),
        CONSTRAINT build_files_type_key UNIQUE (build_id, type, sub_type)
      );

      CREATE TABLE build_jobs (
        build_id bigint CONSTRAINT build_jobs_pkey PRIMARY KEY
          CONSTRAINT build_jobs_build_id_fkey REFERENCES builds ON DELETE CASCADE,
        attempts integer NOT NULL DEFAULT 0,
        lease uuid,
        leased_until timestamptz,
        created_at timestamptz NOT NULL DEFAULT now()
      );

      CREATE TABLE build_events (
        id bigint GENERATED BY DEFAULT AS IDENTITY CONSTRAINT build_events_pkey PRIMARY KEY,
        build_id bigint NOT NULL CONSTRAINT build_events_build_id_fkey REFERENCES builds ON DELETE CASCADE,
        type text NOT NULL,
        message text NOT NULL,
        data text,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX build_events_build_id_idx ON build_events (build_id, id);

      -- Without a game, because that was deleted, a session is deleted with its parts.
      CREATE TABLE upload_sessions (
        id uuid CONSTRAINT upload_sessions_pkey PRIMARY KEY,
        game_id bigint CONSTRAINT upload_sessions_game_id_fkey REFERENCES games ON DELETE SET NULL,
        max_bytes bigint NOT NULL,
        size bigint,
        received bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        CONSTRAINT upload_sessions_received_check CHECK (received BETWEEN 0 AND coalesce(size, max_bytes))
      );
      CREATE INDEX upload_sessions_game_id_idx ON upload_sessions (game_id);
      CREATE INDEX upload_sessions_expires_at_idx ON upload_sessions (expires_at);

      CREATE TABLE upload_parts (
        session_id uuid NOT NULL CONSTRAINT upload_parts_session_id_fkey REFERENCES upload_sessions,
        file_key text NOT NULL,
        start bigint NOT NULL,
        size bigint,
        CONSTRAINT upload_parts_pkey PRIMARY KEY (session_id, file_key),
        CONSTRAINT upload_parts_size_check CHECK (size > 0)
      );
    `);
  }

  async down(db: QueryRunner) {
    await db.query(`
      DROP TABLE upload_parts;
      DROP TABLE upload_sessions;
      DROP TABLE build_events;
      DROP TABLE build_jobs;
      DROP TABLE build_files;
      DROP TRIGGER builds_set_versions_of_new ON builds;
      DROP TRIGGER builds_set_versions_of_moved ON builds;
      DROP FUNCTION builds_set_versions();
      DROP FUNCTION builds_set_versions_of_moved();
      DROP FUNCTION builds_number(bigint[], text[], bigint[]);
      ALTER TABLE builds DROP version, DROP hidden, DROP parent_build_id, DROP source, DROP metadata,
        DROP launch_analysis, DROP error, DROP expires_at;
    `);
  }
}
