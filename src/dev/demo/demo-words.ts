// The lengths of two lists have no common factor, so each pair of words repeats only after all others.
export const ADJECTIVES = words(
  'Amber Brave Bright Calm Clever Copper Crooked Dusty Distant Drifting Early Electric Emerald Faded Fearless Frozen ' +
    'Gentle Gilded Hidden Hollow Humble Iron Ivory Last Little Lonely Lost Lucky Midnight Mossy Paper Patient ' +
    'Quiet Restless Rusty Silent Silver Sleepy Velvet Wandering',
);
export const NOUNS = words(
  'Anchor Arcade Balloon Beacon Bridge Canyon Castle Cavern Clockwork Comet Compass Cove Dungeon Ember Engine ' +
    'Expedition Factory Farm Forest Galaxy Garden Glacier Harbor Island Kingdom Lagoon Lantern Library Lighthouse ' +
    'Machine Meadow Mountain Museum Orchard Planet Railway River Signal Station Temple Voyage',
);
const COLOURS = words(
  'amber ash azure birch bramble cedar clover cobalt coral crimson dune fern flint frost hazel heather indigo ivory ' +
    'jade juniper lilac maple marble mint moss ochre onyx pepper plum rowan saffron willow',
);
const ANIMALS = words(
  'badger beetle bison crane cricket dormouse egret falcon ferret finch gecko hedgehog heron ibex jackdaw kestrel ' +
    'lark lynx magpie marten mole newt otter owl puffin raven robin seal shrew sparrow stoat swift vole',
);
export const GENRES = words(
  'adventure puzzle platformer strategy racing farming rhythm mystery roguelike card',
);
export const SHELVES = words(
  'Evening Weekend Family Couch Speedrun Relaxing Rainy-Day Two-Player Favourite Short',
);
const DOMAINS = ['example.com', 'example.org', 'example.net'];

function words(text: string) {
  return text.split(' ');
}

export function createName(id: number) {
  const pairs = COLOURS.length * ANIMALS.length;
  const [colour, animal] = [COLOURS[id % COLOURS.length]!, ANIMALS[id % ANIMALS.length]!];
  const round = Math.floor(id / pairs) || '';
  return { username: `${colour}-${animal}${round}`, display_name: `${capital(colour)} ${capital(animal)}` };
}

export const capital = (word: string) => word[0]!.toUpperCase() + word.slice(1);
export const withArticle = (word: string) => `${/^[aeiou]/.test(word) ? 'an' : 'a'} ${word}`;
export const createEmail = (user: number) => `${createName(user).username}@${DOMAINS[user % DOMAINS.length]}`;
export const createOtherEmail = (user: number) =>
  `games+${createName(user).username}@${DOMAINS[(user + 1) % DOMAINS.length]}`;
export const guestEmail = (id: number) => `guest${id}@example.net`;
