import { Argument, type Command, type Option } from 'commander';
import { type Commands, OperatorCommand } from './operator-command';
import { gamewharf } from './program';

/** Everything that can follow the words of one command. */
interface Place {
  /** Words such as `keys create`; empty for the program itself. */
  words: string;
  commands: { word: string; text: string }[];
  options: { long: string; text: string; takesValue: boolean; values: readonly string[] }[];
}

const SHELLS = { bash: forBash, zsh: forZsh, fish: forFish };

/** Prints a shell script that contains all commands, so that completion starts no process. */
export const commands: Commands = {
  completion: (completion) =>
    completion
      .addArgument(new Argument('<SHELL>', 'name of your shell').choices(Object.keys(SHELLS)))
      .addHelpText('after', HELP)
      .action((shell: keyof typeof SHELLS) => console.log(SHELLS[shell](listPlaces(gamewharf())))),
};

const HELP = `
Save the script where your shell looks for completions:
  bash   gamewharf completion bash > ~/.local/share/bash-completion/completions/gamewharf
  zsh    gamewharf completion zsh > ~/.zfunc/_gamewharf    with fpath+=~/.zfunc before compinit in ~/.zshrc
  fish   gamewharf completion fish > ~/.config/fish/completions/gamewharf.fish`;

function listPlaces(command: Command, above = ''): Place[] {
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
      values: option.argChoices ?? knownValues(command, option),
    })),
  };
  // `help` is not one of `command.commands`: it takes no options.
  return [place, ...command.commands.flatMap((one) => listPlaces(one, `${above} ${one.name()}`.trim()))];
}

const knownValues = (command: Command, { long }: Option) =>
  (command instanceof OperatorCommand && command.optionValues.get(long ?? '')) || [];

/** Options whose values are known. */
const listing = ({ options }: Place) => options.filter(({ values }) => values.length > 0);

/** Sorts places with more words first: `keys create` before `keys`. */
const deepestFirst = (places: Place[]) =>
  places.toSorted((a, b) => b.words.split(' ').length - a.words.split(' ').length);

/** The text as a single-quoted string of bash and zsh. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A pattern for the words so far, each followed by a space. */
const toPattern = ({ words }: Place) => (words === '' ? "''" : `${quoted(`${words} `)}*`);

function forBash(places: Place[]): string {
  const cases = deepestFirst(places).map((place) => {
    const options = place.options.map(({ long }) => long);
    const valued = place.options.filter(({ takesValue }) => takesValue).map(({ long }) => long);
    const words = [...place.commands.map(({ word }) => word), ...options];
    const values = listing(place).map(({ long, values }) => `${long}) values='${values.join(' ')}' ;;`);
    const known = values.length > 0 ? `; case $previous in ${values.join(' ')} esac` : '';
    return `    ${toPattern(place)}) all='${words.join(' ')}' valued=' ${valued.join(' ')} '${known} ;;`;
  });
  return `# bash completion of gamewharf
_gamewharf() {
  local all='' valued='' values='' line='' word previous=\${COMP_WORDS[COMP_CWORD-1]}
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || line+="$word "
  done
  case $line in
${cases.join('\n')}
  esac
  # What follows an option may be anything, such as a file, unless its values are known.
  [[ $valued == *" $previous "* ]] && all=$values
  COMPREPLY=($(compgen -W "$all" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gamewharf gamewharf`;
}

/** _describe separates a word from its description with a colon. */
const described = (word: string, text: string) => `      ${quoted(`${word.replaceAll(':', '\\:')}:${text}`)}`;

const zshValues = (place: Place) => {
  const cases = listing(place).map(({ long, values }) => `${long}) values=(${values.join(' ')}) ;;`);
  return cases.length > 0 ? `\n      case $previous in ${cases.join(' ')} esac` : '';
};

function forZsh(places: Place[]): string {
  const cases = deepestFirst(places).map(
    (place) => `    ${toPattern(place)})
      commands=(
${place.commands.map(({ word, text }) => described(word, text)).join('\n')}
      )
      options=(
${place.options.map(({ long, text }) => described(long, text)).join('\n')}
      )${zshValues(place)} ;;`,
  );
  return `#compdef gamewharf
# zsh completion of gamewharf
_gamewharf() {
  local -a commands options values
  local line='' word previous=\${words[CURRENT-1]}
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ $word == -* ]] || line+="$word "
  done
  case $line in
${cases.join('\n')}
  esac
  if (( \${#values} )); then
    compadd -a values
    return
  fi
  _describe -t commands command commands
  _describe -o option options
  _files
}
if [ "$funcstack[1]" = _gamewharf ]; then _gamewharf "$@"; else compdef _gamewharf gamewharf; fi`;
}

/** The text as a single-quoted string of fish. */
const inFish = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fishValues(takesValue: boolean, values: readonly string[]): string {
  if (values.length > 0) return ` -x -a ${inFish(values.join(' '))}`;
  return takesValue ? ' -r' : '';
}

function forFish(places: Place[]): string {
  const lines = places.flatMap(({ words, commands, options }) => {
    const start = `complete -c gamewharf -n ${inFish(`__gamewharf_at ${inFish(words)}`)}`;
    return [
      ...commands.map(({ word, text }) => `${start} -f -a ${word} -d ${inFish(text)}`),
      ...options.map(
        ({ long, text, takesValue, values }) =>
          `${start} -l ${long.slice(2)}${fishValues(takesValue, values)} -d ${inFish(text)}`,
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
