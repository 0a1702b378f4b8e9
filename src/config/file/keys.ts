// config/file/keys.ts: every configuration key with its meaning, read from the schema; for error messages, docs and `ags init`.
import { z } from 'zod';
import { ConfigFile } from '../../protocol/config/config.ts';
import {
  BACKEND,
  CHECKS_TIMEOUT,
  HOOK_TIMEOUT,
  KERNEL,
  LIMITS,
  NETWORK,
  NETWORK_LIMITS,
  COMPOSE_OVERRIDE,
  COMPOSE_TIMEOUT,
  SETUP_TIMEOUT,
  USER,
  WORKSPACE,
} from '../defaults.ts';

export interface KeyDoc {
  /** "limits.memory"; below a list "mounts[].path". */
  readonly path: string;
  readonly kind: 'section' | 'list' | 'names' | 'value';
  /** The allowed values, in words. */
  readonly type: string;
  readonly description: string;
  /** An example in the form of the value. */
  readonly example: unknown;
  /** The value if the key is absent, for keys with a single value. */
  readonly builtIn: string | undefined;
  /** When a project's file needs `ags trust` for it: always, above the user's own value, unless inside the sandbox, or never. */
  readonly trust: 'always' | 'above' | 'outside' | 'never';
}

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly needsTrust?: boolean | string;
}

/**
 * The schema for editors: without internal marks, with built-in values.
 * @public scripts/docs.mjs writes it to docs/.
 */
export function publicJsonSchema(): Record<string, unknown> {
  const plain = JSON.parse(
    JSON.stringify(readSchema(), (key, value: unknown) => (key === 'needsTrust' ? undefined : value)),
  ) as Schema;
  for (const { path, builtIn } of listKeys()) {
    const key = path.split('.').reduce<Schema | undefined>((at, name) => at?.properties?.[name], plain);
    if (key && builtIn !== undefined) Object.assign(key, { default: typedDefault(key, builtIn) });
  }
  // A list is short for `run`.
  const setup = plain.properties?.['setup'];
  if (setup?.properties?.['run'])
    Object.assign(plain.properties ?? {}, { setup: { anyOf: [setup, setup.properties['run']] } });
  for (const [name, short] of SHORT) {
    const key = plain.properties?.[name];
    if (key?.properties?.[short])
      Object.assign(plain.properties ?? {}, { [name]: { anyOf: [key, key.properties[short]] } });
  }
  // A service may be just its preset, or be removed.
  const services = plain.properties?.['services'];
  if (typeof services?.additionalProperties === 'object')
    Object.assign(services, {
      additionalProperties: {
        anyOf: [
          services.additionalProperties,
          services.additionalProperties.properties?.['preset'] ?? {},
          { const: false },
          { type: 'null' },
        ],
      },
    });
  return plain as Record<string, unknown>;
}

function typedDefault(key: Schema, text: string): unknown {
  if (key.type === 'boolean') return text === 'true';
  return key.type === 'integer' ? Number(text) : text;
}

function readSchema(): Schema {
  return z.toJSONSchema(ConfigFile, { io: 'input' }) as Schema;
}

/** In schema order, each section before its keys. */
export function listKeys(): KeyDoc[] {
  return below(readSchema(), '', 'never');
}

function below(schema: Schema, prefix: string, inherited: KeyDoc['trust']): KeyDoc[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, key]) => {
    const path = prefix + name;
    const trust = trustOf(key) ?? inherited;
    const doc: KeyDoc = {
      path,
      kind: kindOf(key),
      type: typeOf(key),
      description: key.description ?? '',
      example: key.examples?.[0],
      builtIn: BUILT_IN[path],
      trust,
    };
    const inner = formsOf(key).flatMap((form) => [
      ...below(form, `${path}.`, trust),
      ...formsOf(form.items ?? {}).flatMap((item) => below(item, `${path}[].`, trust)),
      ...(typeof form.additionalProperties === 'object'
        ? below(form.additionalProperties, `${path}.<name>.`, trust)
        : []),
    ]);
    return [doc, ...inner];
  });
}

/** A key that is either a list or keys is documented by its keys; any other union by all its forms. */
function formsOf(schema: Schema): readonly Schema[] {
  const forms = schema.anyOf ?? [schema];
  return isListOrKeys(schema) ? forms.filter(({ type }) => type === 'object') : forms;
}

function isListOrKeys({ anyOf }: Schema): boolean {
  return anyOf?.some(({ type }) => type === 'array') === true && anyOf.some(({ type }) => type === 'object');
}

function trustOf({ needsTrust }: Schema): KeyDoc['trust'] | undefined {
  if (needsTrust === undefined) return undefined;
  const trust = TRUST[String(needsTrust)];
  if (trust === undefined) throw new Error(`keys.ts does not know needsTrust: ${needsTrust}`);
  return trust;
}

const TRUST: Readonly<Record<string, KeyDoc['trust']>> = {
  true: 'always',
  'on this machine': 'outside',
  'above your own': 'above',
};

function kindOf(schema: Schema): KeyDoc['kind'] {
  if (isListOrKeys(schema)) return 'section';
  if (schema.type === 'array') return 'list';
  if (schema.type !== 'object') return 'value';
  return schema.properties ? 'section' : 'names';
}

function typeOf(schema: Schema): string {
  if (schema.enum) return schema.enum.join(', ');
  if (isListOrKeys(schema)) return 'list or keys';
  if (schema.anyOf) return schema.anyOf.some(({ type }) => type === 'array') ? 'text or list' : 'size';
  if (schema.type === 'integer') return `${schema.minimum} to ${schema.maximum}`;
  if (schema.type === 'boolean') return 'true, false';
  if (schema.type === 'array') return 'list';
  return schema.type === 'object' ? (schema.properties ? 'keys' : 'names with values') : 'text';
}

/** Sections that one value stands for. */
const SHORT = [
  ['docker', 'enabled'],
  ['compose', 'enabled'],
  ['home', 'keep'],
] as const;

const BUILT_IN: Readonly<Record<string, string>> = {
  user: String(USER),
  backend: BACKEND,
  'docker.enabled': 'false',
  'compose.enabled': 'false',
  'compose.override': COMPOSE_OVERRIDE,
  'compose.timeout': COMPOSE_TIMEOUT,
  workspace: WORKSPACE,
  'home.keep': 'task',
  'home.shared': 'false',
  'setup.timeout': SETUP_TIMEOUT,
  'checks.timeout': CHECKS_TIMEOUT,
  'merge.check': 'false',
  'tools.defaults': 'true',
  'kernel.ptrace': String(KERNEL.ptrace),
  'kernel.unixSockets': String(KERNEL.unixSockets),
  'hooks.timeout': HOOK_TIMEOUT,
  'network.mode': NETWORK.mode,
  'network.defaults': String(NETWORK.defaults),
  'network.askSeconds': String(NETWORK.askSeconds),
  ...Object.fromEntries(Object.entries(NETWORK_LIMITS).map(([name, value]) => [`network.limits.${name}`, value])),
  ...Object.fromEntries(Object.entries(LIMITS).map(([name, value]) => [`limits.${name}`, value])),
};
