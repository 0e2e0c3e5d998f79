import { statement } from '../platform/database/statement';

/** The trait of a game for one of its uploads. */
export const gameTraitFor = (trait: string): string => (trait === 'demo' ? 'has_demo' : trait);

/**
 * Whether the game has these traits, according to the uploads that players see. Its other traits are
 * unchanged, because an imported game may have traits that none of its uploads has.
 */
export const UPDATE_TRAITS = statement(
  'game_update_traits',
  `UPDATE games g SET traits = found.traits
   FROM (SELECT ARRAY(
       SELECT trait FROM (
         SELECT trait FROM games o CROSS JOIN unnest(o.traits) AS trait WHERE o.id = $game_id AND trait <> ALL ($affected::text[])
         UNION ALL
         SELECT trait FROM unnest($affected::text[]) AS trait WHERE EXISTS (
           SELECT FROM uploads f WHERE f.game_id = $game_id AND NOT f.hidden
             AND CASE trait WHEN 'has_demo' THEN 'demo' ELSE trait END = ANY (f.traits))) traits) AS traits) found
   WHERE g.id = $game_id AND g.traits <> found.traits`,
  'game $game_id',
);
