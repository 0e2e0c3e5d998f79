/**
 * The keys of the files that an attempt to process a build stores. Stored files never change, so each attempt
 * has its own.
 */
export const storedKeys = (game_id: number, build_id: number, attempt: number) => {
  const folder = `${game_id}/builds/${build_id}.${attempt}`;
  return {
    archive: `${folder}/archive.zip`,
    patch: `${folder}/patch.pwr`,
    signature: `${folder}/signature.pws`,
  };
};
