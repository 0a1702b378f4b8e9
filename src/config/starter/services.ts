// config/starter/services.ts: finds the services of a compose file that ags has a preset for. Pure.
// It reads lines and no YAML: anchors, tags and deep nesting of an unknown file have no effect.
// Invariant: a name or version that the configuration would not accept is left out.
import { SERVICE_NAME } from '../../protocol/config/words.ts';
import { SERVICE_PRESETS, type ServicePresetName } from '../../protocol/service.ts';

export const COMPOSE_FILES: readonly string[] = [
  'compose.yaml',
  'compose.yml',
  'docker-compose.yaml',
  'docker-compose.yml',
];

export interface FoundService {
  readonly name: string;
  readonly preset: ServicePresetName;
  readonly version: string | null;
}

const MOST = 16;

export function servicesIn(compose: string): FoundService[] {
  const found = new Map<string, FoundService>();
  let [inside, depth, keys, name] = [false, 0, 0, ''];
  for (const line of compose.split('\n')) {
    const [, space = '', text = ''] = /^( *)([^\r]*)/.exec(line) ?? [];
    if (text === '' || text.startsWith('#')) continue;
    if (space === '') {
      inside = /^services:\s*(#.*)?$/.test(text);
      [depth, keys, name] = [0, 0, ''];
    }
    if (!inside || space === '') continue;
    if (depth === 0) depth = space.length;
    if (space.length <= depth) {
      name = /^["']?([\w.-]{1,64})["']?:\s*(#.*)?$/.exec(text)?.[1] ?? '';
      keys = 0;
      continue;
    }
    // Its own keys, not those of its environment, for example.
    if (keys === 0) keys = space.length;
    const image = space.length === keys ? /^image:\s*["']?([^\s"'#]{1,256})/.exec(text)?.[1] : undefined;
    const service = image === undefined ? null : presetOf(name, image);
    if (service !== null && found.size < MOST) found.set(name, service);
  }
  return [...found.values()];
}

function presetOf(name: string, image: string): FoundService | null {
  const [, base = '', tag = ''] = /^(?:.*\/)?([a-z0-9-]+)(?::([\w.-]+))?(?:@.*)?$/.exec(image) ?? [];
  const preset = SERVICE_PRESETS.find((one) => one !== 'none' && one === (OTHER_NAMES[base] ?? base));
  if (preset === undefined || preset === 'none' || !SERVICE_NAME.test(name)) return null;
  return { name, preset, version: /^\d{1,4}(?=$|[.-])/.exec(tag)?.[0] ?? null };
}

const OTHER_NAMES: Readonly<Record<string, ServicePresetName>> = { postgresql: 'postgres', mongo: 'mongodb' };
