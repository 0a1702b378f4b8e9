// test/config/config-fixture.ts: a home, a project and their configuration files, new for each test.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConfigFlags, ConfigInput, EffectiveConfig } from '../../src/config/effective.ts';
import { loadConfig } from '../../src/config/load.ts';
import { approve } from '../../src/config/trust.ts';
import { AgsError, type ErrorCode } from '../../src/protocol/errors.ts';

export const GiB = 2 ** 30;
export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

export interface Fixture extends Disposable {
  readonly dir: string;
  readonly input: ConfigInput;
  project(text: string | Uint8Array): void;
  user(text: string): void;
  load(flags?: ConfigFlags): Promise<EffectiveConfig>;
  problem(flags?: ConfigFlags): Promise<{ code: ErrorCode; message: string }>;
  /** The project's unapproved requests; empty when it loads. */
  asks(): Promise<readonly string[]>;
  trust(asks: readonly string[]): void;
}

export function createFixture(change: Partial<Omit<ConfigInput, 'home'>> = {}): Fixture {
  const dir = fs.mkdtempSync(join(tmpdir(), 'ags-config-'));
  const home = join(dir, 'home');
  const input: ConfigInput = {
    home,
    userConfigFile: join(home, '.config/ags/config.yaml'),
    projectDir: join(home, 'project'),
    stateDir: join(home, '.local/state/ags'),
    cacheDir: join(home, '.cache/ags'),
    flags: {},
    memoryTotalBytes: 8 * GiB,
    ...change,
  };
  fs.mkdirSync(input.projectDir, { recursive: true });
  const load = (flags: ConfigFlags = {}): Promise<EffectiveConfig> => loadConfig({ ...input, flags });
  const failure = async (flags: ConfigFlags = {}): Promise<AgsError | undefined> => {
    const error: unknown = await load(flags).then(
      () => undefined,
      (e: unknown) => e,
    );
    if (error === undefined || error instanceof AgsError) return error;
    throw error;
  };
  return {
    dir,
    input,
    load,
    project: (text) => fs.writeFileSync(join(input.projectDir, 'ags.yaml'), text),
    user(text) {
      fs.mkdirSync(dirname(input.userConfigFile), { recursive: true });
      fs.writeFileSync(input.userConfigFile, text);
    },
    async problem(flags) {
      const error = await failure(flags);
      if (!error) throw new Error('expected an error');
      return { code: error.code, message: error.message };
    },
    async asks() {
      const error = await failure();
      if (error && error.code !== 'config.untrusted') throw error;
      return (error?.details['asks'] as readonly string[] | undefined) ?? [];
    },
    trust: (asks) =>
      approve({ ...input, bytes: fs.readFileSync(join(input.projectDir, 'ags.yaml')), asks, now: new Date(0) }),
    [Symbol.dispose]: () => fs.rmSync(dir, { recursive: true, force: true }),
  };
}
