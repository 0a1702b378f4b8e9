// config/network/gateway-file.ts: the configuration of a stand-alone gateway: the usual keys, and a section with its listening addresses.
import { AgsError } from '../../protocol/errors.ts';
import type { ValueSource } from '../../protocol/network.ts';
import type { EffectiveConfig } from '../effective.ts';
import { mergeLayers, type MergeContext } from '../merge.ts';
import { parseLayer } from '../file/parse.ts';
import { readLayerFile, type LayerFile } from '../file/read.ts';

export interface GatewayFile {
  readonly config: EffectiveConfig;
  readonly listen: readonly string[];
  readonly admin: string | null;
  readonly log: string | null;
  readonly token: ValueSource | null;
}

/** Without a file nothing is allowed; even the built-in lists are off. */
export function readGatewayFile(path: string | null, context: MergeContext): GatewayFile {
  const file = path === null ? EMPTY : readLayerFile({ kind: 'user', path, label: path });
  if (file === undefined)
    throw new AgsError('config.invalid', `${path} does not exist.`, { hint: 'See: ags help gateway' });
  const layer = parseLayer(file);
  const { listen = [], admin, log, tokenFile } = layer.values.gateway ?? {};
  return {
    config: mergeLayers([layer], context, path === null ? [] : [path]),
    listen,
    admin: admin ?? null,
    log: log ?? null,
    token: tokenFile === undefined ? null : { file: tokenFile },
  };
}

const EMPTY: LayerFile = { kind: 'user', path: '', label: '', bytes: Buffer.from('network: { defaults: false }') };
