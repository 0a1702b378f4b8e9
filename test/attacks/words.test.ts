// test/attacks/words.test.ts: escapes in an agent's commits, files, branches and errors are shown as text.
// needs: sandbox
import { expect, test } from 'vitest';
import { CALLERS } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';

// Clears the screen, sets the title and the clipboard, overwrites the line, hides text, reverses its direction; in 7 and 8 bits.
const EVIL = String.raw`\033[2J\033]0;pwned\007\033]52;c;cHduZWQ=\007\rover\b\b\b\302\2332J\342\200\256gnp`;

const AGENT = `
evil=$(printf '${EVIL}')
git config user.name "name $evil" && git config user.email 'a@b.c'
printf 'text %s\\n' "$evil" > "file $evil"
printf 'text %s\\n' "$evil" > plain.txt
mkdir -p .github/workflows && echo x > ".github/workflows/$evil.yml"
git checkout -q -b "side" && git add -A && git commit -q -m "subject $evil"
printf '{"scripts":{"postinstall":"%s"}}' "$evil" > package.json
printf 'error %s\\n' "$evil" >&2; printf 'said %s\\n' "$evil"; exit 3`;

test.each(CALLERS)(
  'A122: escapes in a commit, an author, a file name, a diff and an error are shown as text (as %s)',
  async (caller) => {
    using machine = createAgentMachine(caller);
    const script = Buffer.from(AGENT).toString('base64');
    await machine.ags([
      'start',
      'evil',
      'a goal',
      '--agent',
      `sh -c "cat >/dev/null; echo ${script} | base64 -d | sh"`,
    ]);
    await machine.until('evil', ['ready', 'failed']);
    const commands = [
      ['list'],
      ['show', 'evil'],
      ['logs', 'evil'],
      ['logs', 'evil', '-v'],
      ['diff', 'evil'],
      ['diff', 'evil', '--stat'],
      ['diff', 'evil', '--name-only'],
      ['review', 'evil'],
      ['merge', 'evil', '--dry-run'],
      ['apply', 'evil', 'nowhere'],
      // These are refused, with the file's name in the error.
      ['merge', 'evil', '.github'],
      ['apply', 'evil', '.github'],
      // A shell passes a pattern's matches like this.
      ['apply', 'evil', 'n\u001b]0;pwned\u0007\u009b2J\u202e'],
      ['merge', 'evil', '-y'],
    ];
    let shown = '';
    for (const args of commands) {
      const { stdout, stderr } = await machine.ags(args);
      // oxlint-disable-next-line no-control-regex
      expect(stdout + stderr, args.join(' ')).not.toMatch(
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/,
      );
      shown += stdout + stderr;
    }
    // The text is shown, not left out.
    for (const part of ['file ', 'plain.txt', '+text ', 'postinstall', 'error ', 'said '])
      expect(shown).toContain(part);
  },
);
