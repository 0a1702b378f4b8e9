// agent-setup/keychain.ts: put a value into the keychain of the user's session, by its standard input: no argument ever holds it.
import { AgsError } from '../protocol/errors.ts';
import { run } from '../lib/process/process.ts';
import { visible } from '../lib/sanitize.ts';
import type { World } from '../run/host-context.ts';

export async function storeInKeychain(world: World, entry: string, label: string, value: string): Promise<void> {
  await tool(world, ['store', `--label=${label}`, ...attributes(entry)], value);
  const { stdout } = await tool(world, ['lookup', ...attributes(entry)]);
  if (stdout.toString('utf8').trimEnd() !== value) throw unusable('it does not give back what was stored');
}

export async function clearFromKeychain(world: World, entry: string): Promise<void> {
  await tool(world, ['clear', ...attributes(entry)]);
}

// As gateway/values.ts reads "service/account".
function attributes(entry: string): string[] {
  const slash = entry.lastIndexOf('/');
  return ['service', entry.slice(0, slash), 'account', entry.slice(slash + 1)];
}

async function tool(world: World, args: readonly string[], input = ''): Promise<{ stdout: Buffer }> {
  const env = Object.fromEntries(
    Object.entries(world.env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
  const done = await run(['secret-tool', ...args], { input, env, cwd: '/', timeoutMs: 60_000, maxBytes: 65_536 });
  if (done.exitCode === 0) return done;
  if (done.exitCode === 127)
    throw unusable('the program secret-tool is not installed (Debian and Ubuntu: libsecret-tools)');
  throw unusable(visible(done.stderr.trim().slice(0, 300)) || `secret-tool ended with ${done.exitCode}`);
}

function unusable(why: string): AgsError {
  return new AgsError('auth.invalid', `The keychain cannot be used: ${why}.`, {
    hint: 'Without --keychain it is kept in a file that only you can read.',
  });
}
