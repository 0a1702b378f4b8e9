// config/gateway-file.ts: the file of a gateway that runs on its own: the same keys as ever, with a section that says where it listens.
import { AgsError } from '../protocol/errors.ts';
import type { ValueSource } from '../protocol/network.ts';
import type { EffectiveConfig } from './effective.ts';
import { mergeLayers, type World } from './merge.ts';
import { parseLayer } from './parse.ts';
import { readLayerFile } from './read.ts';

export interface GatewayFile {
  readonly config: EffectiveConfig;
  readonly listen: readonly string[];
  readonly admin: string | null;
  readonly log: string | null;
  readonly token: ValueSource | null;
}

export function readGatewayFile(path: string, world: World): GatewayFile {
  const file = readLayerFile({ kind: 'user', path, label: path });
  if (file === undefined)
    throw new AgsError('config.invalid', `${path} does not exist.`, { hint: 'See: ags help gateway' });
  const layer = parseLayer(file);
  const { listen = [], admin, log, tokenFile } = layer.values.gateway ?? {};
  if (listen.length === 0)
    throw new AgsError('config.invalid', `${path} does not say where to listen (gateway.listen).`, {
      hint: 'For example: gateway: { listen: ["127.0.0.1:3128"] }',
    });
  return {
    config: mergeLayers([layer], world, [path]),
    listen,
    admin: admin ?? null,
    log: log ?? null,
    token: tokenFile === undefined ? null : { file: tokenFile },
  };
}
