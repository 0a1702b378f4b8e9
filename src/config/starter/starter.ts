// config/starter/starter.ts: the short ags.yaml that `ags init` writes for a project. Pure.
// Invariant: the file loads as it is and asks for nothing that needs approval. What cannot run on this machine is commented out.
import { stringify } from 'yaml';
import { suggestCommands, type RootFiles } from './commands.ts';
import { COMPOSE_FILES, servicesIn, type FoundService } from './services.ts';

export interface Starter {
  readonly setup: readonly Suggested<string>[];
  readonly checks: readonly Suggested<string>[];
  readonly services: readonly Suggested<StartedService>[];
  /** Further keys, commented out, each with its reason. */
  readonly hints: readonly { readonly line: string; readonly why: string }[];
}

/** `instead`: the version that the compose file asks for, if this machine has only another. */
type StartedService = FoundService & { readonly instead: string | null };

interface Suggested<T> {
  readonly value: T;
  /** Programs that are not on this machine; empty: it can run here. */
  readonly missing: readonly string[];
}

/** Returns the missing ones. */
export interface Machine {
  programs(names: readonly string[]): readonly string[];
  preset(name: FoundService['preset'], version: string | null): readonly string[];
}

export function planStarter(files: RootFiles, machine: Machine): Starter {
  const compose = COMPOSE_FILES.find((name) => files.names.has(name));
  const { setup, checks } = suggestCommands(files);
  const tried = (value: string): Suggested<string> => ({ value, missing: machine.programs(programOf(value)) });
  return {
    setup: setup.map(tried),
    checks: checks.map(tried),
    services: servicesIn(compose === undefined ? '' : files.text(compose)).map((found) => {
      // Another version on this machine is better than none.
      const version = machine.preset(found.preset, found.version).length === 0 ? found.version : null;
      const missing = machine.preset(found.preset, version);
      return {
        value: { ...found, version, instead: missing.length === 0 && version !== found.version ? found.version : null },
        missing,
      };
    }),
    hints: [
      ...(compose === undefined
        ? []
        : [{ line: 'compose: true', why: `start ${compose} itself, in a private Docker daemon` }]),
      ...(files.names.has('.devcontainer') || files.names.has('.devcontainer.json')
        ? [{ line: 'image: devcontainer', why: 'the programs of your dev container, with Docker or Podman' }]
        : []),
    ],
  };
}

/** The program of a command that is not in the project. */
function programOf(command: string): string[] {
  const [program = ''] = command
    .replace(/^\(cd \S+ && /, '')
    .split(' ')
    .filter((word) => !/^[A-Z_]+=/.test(word));
  return program.includes('/') ? [] : [program];
}

export function starterText({ setup, checks, services, hints }: Starter): string {
  return [
    '# What sandboxes of this project may see and use. All keys: ags init --full --print. Values in force: ags config',
    ...block('setup', setup, 'Runs once; every task starts with the result.', 'setup: [make deps]', listItem),
    ...block('checks', checks, 'For ags check; merge.check: true requires them.', 'checks: [make test]', listItem),
    ...block(
      'services',
      services,
      'Beside each task, with data of its own.',
      'services: { db: postgres }',
      serviceLine,
    ),
    ...hints.map(({ line, why }) => `# ${line}   # ${why}`),
    '',
  ].join('\n');
}

/** A key with one line for each value; commented out as a whole if no value can run here. */
function block<T>(
  key: string,
  list: readonly Suggested<T>[],
  about: string,
  example: string,
  write: (value: T) => string,
): string[] {
  if (list.length === 0) return [`# ${example}   # ${about}`];
  const off = list.every(({ missing }) => missing.length > 0) ? '# ' : '';
  return [
    `# ${about}`,
    `${off}${key}:`,
    ...list.map(({ value, missing }) =>
      missing.length === 0
        ? `  ${write(value)}`
        : `${off === '' ? '  # ' : '#   '}${write(value)}   # not on this machine: ${missing.join(', ')}`,
    ),
  ];
}

const listItem = (command: string): string => `- ${scalar(command)}`;

function scalar(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd();
}

function serviceLine({ name, preset, version, instead }: StartedService): string {
  const line = lineOf({ [name]: version === null ? preset : { preset, version } });
  return instead === null ? line : `${line}   # the version that is here; ${instead} is not`;
}

/** One pair on one line. */
function lineOf(pair: Record<string, unknown>): string {
  const flow = stringify(pair, { lineWidth: 0, collectionStyle: 'flow' }).trim();
  return flow.slice(1, -1).trim();
}
