// config/flags.ts: checks the flags of one command, and the variable AGS_ALLOW, and makes them the last layers.
import type { ConfigFile } from '../protocol/config/config.ts';
import { NETWORK_MODES } from '../protocol/network.ts';
import {
  BACKENDS,
  ENV_NAME,
  ENV_PASS,
  HOME,
  IMAGE,
  PATTERN,
  PLACE,
  RUNTIME,
  WORDS,
  WORKSPACES,
} from '../protocol/config/words.ts';
import type { BackendChoice, ConfigFlags, WorkspaceChoice } from './effective.ts';
import { quote, wrongValue, type Layer } from './file/layer.ts';
import { isLimitName, LIMIT_NAMES } from './limits.ts';
import { suggest } from './file/suggest.ts';

export function flagLayer(flags: ConfigFlags): Layer {
  const at: Record<string, string> = {};
  const each = (
    key: string,
    flag: string,
    items: readonly string[] | undefined,
    form: RegExp,
    words: string,
  ): string[] | undefined =>
    items?.map((item, i) => {
      at[`${key}[${i}]`] = flag;
      return form.test(item) ? item : refuse(flag, item, words);
    });

  for (const name of Object.keys(flags.limits ?? {})) {
    at[`limits.${name}`] = `--limit ${name}`;
    if (isLimitName(name)) continue;
    const near = suggest(name, LIMIT_NAMES);
    refuse(
      '--limit',
      name,
      near ? `one of ${LIMIT_NAMES.join(', ')} (did you mean "${near}"?)` : `one of ${LIMIT_NAMES.join(', ')}`,
    );
  }
  for (const name of Object.keys(flags.envSet ?? {})) {
    at[`env.set.${name}`] = '--env';
    if (!ENV_NAME.test(name)) refuse('--env', name, WORDS.envName);
  }
  if (flags.workspace !== undefined) at['workspace'] = '--workspace';

  if (flags.docker !== undefined) at['docker.enabled'] = '--docker';
  if (flags.compose !== undefined) at['compose.enabled'] = flags.compose ? '--compose' : '--no-compose';
  if (flags.backend !== undefined) at['backend'] = '--backend';
  const backend = BACKENDS.find((choice): choice is BackendChoice => choice === flags.backend);
  if (flags.backend !== undefined && backend === undefined) refuse('--backend', flags.backend, WORDS.backend);
  if (flags.image !== undefined) at['image'] = '--image';
  if (flags.image !== undefined && !IMAGE.test(flags.image)) refuse('--image', flags.image, WORDS.image);
  if (flags.runtime !== undefined) at['runtime'] = '--runtime';
  if (flags.runtime !== undefined && !RUNTIME.test(flags.runtime)) refuse('--runtime', flags.runtime, WORDS.runtime);
  const workspace = WORKSPACES.find((choice): choice is WorkspaceChoice => choice === flags.workspace);
  if (flags.workspace !== undefined && workspace === undefined) refuse('--workspace', flags.workspace, WORDS.workspace);
  if (flags.home !== undefined) at['home.keep'] = '--home';
  if (flags.home !== undefined && !HOME.test(flags.home)) refuse('--home', flags.home, WORDS.home);
  const mounts = each('mounts', '--mount', flags.mounts, PLACE, WORDS.place)?.map((path) => ({ path }));
  const reveal = each('reveal', '--reveal', flags.reveal, PATTERN, WORDS.pattern);
  const pass = each('env.pass', '--env', flags.envPass, ENV_PASS, WORDS.envPass);
  const mode = NETWORK_MODES.find((choice) => choice === flags.network);
  if (flags.network !== undefined && mode === undefined) refuse('--network', flags.network, WORDS.mode);
  if (mode !== undefined) at['network.mode'] = '--network';
  // The merge of all layers checks what a rule or a grant means.
  const words = (name: 'allow' | 'deny' | 'tcp' | 'publish'): Record<string, string[]> => {
    const items = each(`network.${name}`, `--${name}`, flags[name], /^/, '');
    return items === undefined || items.length === 0 ? {} : { [name]: items };
  };
  const network = { ...(mode && { mode }), ...words('allow'), ...words('deny'), ...words('tcp'), ...words('publish') };
  // The merge of all layers checks units; the schema of `limits` is looser than its type.
  const limits = flags.limits as ConfigFile['limits'];
  const env = { ...(pass && { pass }), ...(flags.envSet && { set: { ...flags.envSet } }) };
  return {
    kind: 'flags',
    at,
    values: {
      ...(backend && { backend }),
      ...(flags.image !== undefined && { image: flags.image }),
      ...(flags.runtime !== undefined && { runtime: flags.runtime }),
      ...(flags.docker !== undefined && { docker: { enabled: flags.docker } }),
      ...(flags.compose !== undefined && { compose: { enabled: flags.compose } }),
      ...(workspace && { workspace }),
      ...(flags.home !== undefined && { home: { keep: flags.home } }),
      ...(mounts && { mounts }),
      ...(reveal && { reveal }),
      ...(limits && { limits }),
      env,
      ...(Object.keys(network).length > 0 && { network }),
    },
  };
}

/** Hosts of AGS_ALLOW, separated by commas or spaces; no layer, if it is not set. */
export function environmentLayers(variable: string | undefined): Layer[] {
  const allow = (variable ?? '').split(/[,\s]+/).filter((word) => word !== '');
  if (allow.length === 0) return [];
  const at = Object.fromEntries(allow.map((_, i) => [`network.allow[${i}]`, ALLOW_VARIABLE]));
  const layer: Layer = { kind: 'flags', at, values: { network: { allow } } };
  // A method would be separated from its host, and count as a host of its own.
  for (const [i, word] of allow.entries())
    if (/^[A-Z]+$/.test(word) || word.replace(/^https?:\/\//, '').includes('/'))
      throw wrongValue(
        layer,
        `network.allow[${i}]`,
        `${quote(word)}: only hosts can be listed here, without methods and paths`,
        'For example: AGS_ALLOW="example.com,*.example.org:8443". Rules with methods and paths: --allow, or network.allow in ags.yaml',
      );
  return [layer];
}

const ALLOW_VARIABLE = 'AGS_ALLOW';

function refuse(flag: string, found: string, words: string): never {
  throw wrongValue({ kind: 'flags', values: {}, at: { flag } }, 'flag', `expected ${words}, found ${quote(found)}`);
}
