import { Argument, type Command, type Option } from 'commander';
import type { Commands } from './operator-command';
import { gamewharf } from './program';

/** Everything that can follow the words of one command. */
interface Place {
  /** `keys create`; empty: the program itself. */
  words: string;
  commands: { word: string; text: string }[];
  options: { long: string; text: string; takesValue: boolean }[];
}

const SHELLS = { bash: forBash, zsh: forZsh, fish: forFish };

/** Prints a shell script that contains all commands, so that completion starts no process. */
export const commands: Commands = {
  completion: (completion) =>
    completion
      .addArgument(new Argument('<shell>', 'name of your shell').choices(Object.keys(SHELLS)))
      .addHelpText('after', HELP)
      .action((shell: keyof typeof SHELLS) => console.log(SHELLS[shell](placesOf(gamewharf())))),
};

const HELP = `
Save the script where your shell looks for completions:
  bash   gamewharf completion bash > ~/.local/share/bash-completion/completions/gamewharf
  zsh    gamewharf completion zsh > ~/.zfunc/_gamewharf    with fpath+=~/.zfunc before compinit in ~/.zshrc
  fish   gamewharf completion fish > ~/.config/fish/completions/gamewharf.fish`;

function placesOf(command: Command, above = ''): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const place: Place = {
    words: above,
    commands: [
      ...commands.map((one) => ({ word: one.name(), text: one.description() })),
      ...choices.map((word) => ({ word, text: '' })),
    ],
    options: help.visibleOptions(command).map((option: Option) => ({
      long: option.long ?? option.short!,
      text: option.description,
      takesValue: option.required || option.optional,
    })),
  };
  // `help` is not one of `command.commands`: it takes no options.
  return [place, ...command.commands.flatMap((one) => placesOf(one, `${above} ${one.name()}`.trim()))];
}

/** Longer ones first: `keys create` before `keys`. */
const deepestFirst = (places: Place[]) =>
  places.toSorted((a, b) => b.words.split(' ').length - a.words.split(' ').length);

/** As a single-quoted string of bash and zsh. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A pattern for the words so far, each followed by a space. */
const patternOf = ({ words }: Place) => (words === '' ? "''" : `${quoted(`${words} `)}*`);

function forBash(places: Place[]): string {
  const cases = deepestFirst(places).map((place) => {
    const options = place.options.map(({ long }) => long);
    const valued = place.options.filter(({ takesValue }) => takesValue).map(({ long }) => long);
    const words = [...place.commands.map(({ word }) => word), ...options];
    return `    ${patternOf(place)}) all='${words.join(' ')}' valued=' ${valued.join(' ')} ' ;;`;
  });
  return `# bash completion of gamewharf
_gamewharf() {
  local all='' valued='' line='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || line+="$word "
  done
  case $line in
${cases.join('\n')}
  esac
  # What follows an option may be anything, such as a file.
  [[ $valued == *" \${COMP_WORDS[COMP_CWORD-1]} "* ]] && all=''
  COMPREPLY=($(compgen -W "$all" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gamewharf gamewharf`;
}

/** _describe separates a word from its description with a colon. */
const described = (word: string, text: string) => `      ${quoted(`${word.replaceAll(':', '\\:')}:${text}`)}`;

function forZsh(places: Place[]): string {
  const cases = deepestFirst(places).map(
    (place) => `    ${patternOf(place)})
      commands=(
${place.commands.map(({ word, text }) => described(word, text)).join('\n')}
      )
      options=(
${place.options.map(({ long, text }) => described(long, text)).join('\n')}
      ) ;;`,
  );
  return `#compdef gamewharf
# zsh completion of gamewharf
_gamewharf() {
  local -a commands options
  local line='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ $word == -* ]] || line+="$word "
  done
  case $line in
${cases.join('\n')}
  esac
  _describe -t commands command commands
  _describe -o option options
  _files
}
if [ "$funcstack[1]" = _gamewharf ]; then _gamewharf "$@"; else compdef _gamewharf gamewharf; fi`;
}

/** As a single-quoted string of fish. */
const inFish = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function forFish(places: Place[]): string {
  const lines = places.flatMap(({ words, commands, options }) => {
    const start = `complete -c gamewharf -n ${inFish(`__gamewharf_at ${inFish(words)}`)}`;
    return [
      ...commands.map(({ word, text }) => `${start} -f -a ${word} -d ${inFish(text)}`),
      ...options.map(
        ({ long, text, takesValue }) =>
          `${start} -l ${long.slice(2)}${takesValue ? ' -r' : ''} -d ${inFish(text)}`,
      ),
    ];
  });
  const known = deepestFirst(places).flatMap(({ words }) => (words === '' ? [] : [inFish(words)]));
  return `# fish completion of gamewharf
function __gamewharf_at
  set -l words (commandline -opc)
  set -e words[1]
  set -l line (string join ' ' -- (string match -v -- '-*' $words))' '
  for place in ${known.join(' ')}
    if string match -q -- "$place *" "$line"
      test "$place" = "$argv[1]"
      return
    end
  end
  test -z "$argv[1]"
end
${lines.join('\n')}`;
}
