// hooks/ready/no-secrets.ts: refuses to write keys and tokens into files, recognised by their form. It also refuses commands
// that contain one, because they could write it into a file.
import type { HookInput } from '../../protocol/hook.ts';
import { SECRET_FORMATS } from '../../lib/secret-formats.ts';
import { ALLOWED, type Answer } from '../hook.ts';

export function noSecrets({ actions }: HookInput): Answer {
  for (const action of actions) {
    const text = action.kind === 'write' ? (action.content ?? '') : action.kind === 'command' ? action.command : '';
    const found = SECRET_FORMATS.find(({ certain, is, like }) => (certain || is === SIGNED) && like.test(text));
    if (found === undefined) continue;
    const where = action.kind === 'write' ? `The new content of ${action.path}` : 'The command';
    // The reason never repeats the secret, because it is logged.
    return {
      verdict: 'refused',
      reason: `${where} contains what looks like ${found.is}. Read it from the environment instead, or use a made-up value.`,
    };
  }
  return ALLOWED;
}

const SIGNED = 'a signed web token (JWT)';
