// hooks/ready/no-secrets.ts: refuses to write keys and tokens into files, by what they look like. A command that holds one is
// refused as well: it could be on its way into a file.
import type { HookInput } from '../../protocol/hook.ts';
import { SECRET_FORMATS } from '../../lib/secret-formats.ts';
import { ALLOWED, type Answer } from '../hook.ts';

export function noSecrets({ actions }: HookInput): Answer {
  for (const action of actions) {
    const text = action.kind === 'write' ? (action.content ?? '') : action.kind === 'command' ? action.command : '';
    const found = SECRET_FORMATS.find(({ certain, is, like }) => (certain || is === SIGNED) && like.test(text));
    if (found === undefined) continue;
    const where = action.kind === 'write' ? `What would be written to ${action.path}` : 'The command';
    // Never repeated: this goes into logs.
    return {
      verdict: 'refused',
      reason: `${where} holds what looks like ${found.is}. Read it from the environment instead, or use a made-up value.`,
    };
  }
  return ALLOWED;
}

const SIGNED = 'a signed web token (JWT)';
