// agent-setup/keychain.ts: stores a value in the keychain of the user's session.
// Invariant: secret-tool gets the value on its standard input, never as an argument that other processes could read.
import { AgsError, flat } from '../protocol/errors.ts';
import { run } from '../lib/process/process.ts';
import { visible } from '../lib/sanitize.ts';
import type { HostContext } from '../run/host-context.ts';

export async function storeInKeychain(
  context: HostContext,
  entry: string,
  label: string,
  value: string,
): Promise<void> {
  await tool(context, ['store', `--label=${label}`, ...attributes(entry)], value);
  const { stdout } = await tool(context, ['lookup', ...attributes(entry)]);
  if (stdout.toString('utf8').trimEnd() !== value) throw unusable('it does not return the stored value');
}

export async function clearFromKeychain(context: HostContext, entry: string): Promise<void> {
  await tool(context, ['clear', ...attributes(entry)]);
}

// The same format that gateway/values.ts reads: "service/account".
function attributes(entry: string): string[] {
  const slash = entry.lastIndexOf('/');
  return ['service', entry.slice(0, slash), 'account', entry.slice(slash + 1)];
}

async function tool(context: HostContext, args: readonly string[], input = ''): Promise<{ stdout: Buffer }> {
  const env = Object.fromEntries(
    Object.entries(context.env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
  const done = await run(['secret-tool', ...args], { input, env, cwd: '/', timeoutMs: 60_000, maxBytes: 65_536 });
  if (done.exitCode === 0) return done;
  if (done.exitCode === 127)
    throw unusable('the program secret-tool is not installed (Debian and Ubuntu: libsecret-tools)');
  throw unusable(visible(flat(done.stderr).slice(0, 300)) || `secret-tool exited with code ${done.exitCode}`);
}

function unusable(why: string): AgsError {
  return new AgsError('auth.invalid', `The keychain cannot be used: ${why}.`, {
    hint: 'Leave out --keychain to store the value in a file that only you can read.',
  });
}
