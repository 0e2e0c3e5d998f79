/** A statement that is prepared once a connection and then run by its name. */
export interface Statement {
  name: string;
  text: string;
}

export const statement = (name: string, text: string): Statement => ({ name, text });
