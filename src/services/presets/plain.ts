// services/presets/plain.ts: a service that needs no preparation: one program, ready when its port accepts connections.
import type { Connection, ServicePreset } from './preset.ts';

export function plain(
  it: Pick<
    ServicePreset,
    'name' | 'title' | 'programs' | 'places' | 'install' | 'image' | 'ports' | 'run' | 'url' | 'tried'
  > & {
    /** The variable that holds its URL. */
    readonly variable: string;
  },
): ServicePreset {
  const { variable, ...rest } = it;
  return {
    ...rest,
    kind: it.name,
    user: null,
    password: null,
    database: null,
    init: null,
    ready: null,
    prepare: null,
    stop: 'TERM',
    dataVersion: null,
    seeds: {},
    env: (to: Connection) => ({ [variable]: it.url(to) }),
    client: () => null,
  };
}
