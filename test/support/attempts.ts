import { sql } from './sql';

/** Adds an hour to the waits after failed attempts. The first one is a second, which a request takes on a busy machine. */
export const lengthenWaits = () =>
  sql(`
    CREATE FUNCTION lengthen_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      NEW.blocked_until := NEW.blocked_until + interval '1 hour';
      RETURN NEW;
    END $$;
    CREATE TRIGGER lengthen_wait BEFORE UPDATE OF expires_at ON attempts FOR EACH ROW
      WHEN (NEW.blocked_until > now()) EXECUTE FUNCTION lengthen_wait()`);
