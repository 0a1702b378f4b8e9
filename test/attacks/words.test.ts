// test/attacks/words.test.ts: words that an agent chose, wherever it can put them, on the terminal of whoever asks about its work.
import { describe, expect, test } from 'vitest';
import { CALLERS } from '../harness.ts';
import { createAgentMachine } from '../tasks/place.ts';

/** For the shell's printf: the clipboard, the screen, a link, eight-bit controls, going back, reordering, nothing to be seen. */
const EVIL = String.raw`X\033]52;c;eA==\007\033[2J\033]8;;http://evil.test\033\\\302\233\062J\b\b\342\200\256\342\200\213Y`;
const MAKE = `#!/bin/sh
evil=$(printf '${EVIL}')
printf '%s\\rhidden\\n' "$evil" > body.txt
echo hi > "$evil.txt"
mkdir -p .github/workflows hooks
echo hi > ".github/workflows/$evil.yml"
git add -A
GIT_AUTHOR_NAME="$evil" GIT_COMMITTER_NAME="$evil" git commit -qm "subject $evil"
printf '%s\\n' "$evil"
printf '%s\\n' "$evil" >&2
exit 3
`;
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]|\u001b(?!\[[0-9;]*m)/u;

describe.each(CALLERS)('as %s', (caller) => {
  test('A121, A122: in subjects, authors, names, contents, output and failures they are seen and do nothing', async () => {
    using machine = createAgentMachine(caller, { 'make.sh': MAKE });
    const words = 'W\u001b]0;t\u0007\u009b2J\u202e';
    await machine.runDemo('evil', `${words} // run: sh make.sh // say: ${words} // fail: ${words}`);
    const shown: string[] = [];
    for (const args of [
      ['list'],
      ['show', 'evil'],
      ['logs', 'evil'],
      ['diff', 'evil'],
      ['review', 'evil'],
      ['merge', 'evil', '--dry-run'],
      ['apply', 'evil', '--dry-run'],
      ['apply', 'evil', words],
      ['merge', 'evil', '.github'],
      ['apply', 'evil', '.github'],
      ['show', words],
      ['net', 'evil'],
    ]) {
      const { stdout, stderr } = await machine.ags(args);
      expect(UNSEEN.exec(stdout + stderr), `${args.join(' ')}: ${JSON.stringify(stdout + stderr)}`).toBe(null);
      shown.push(stdout + stderr);
    }
    const all = shown.join('\n');
    expect(all).toContain(String.raw`X\x1b]52;c;eA==\x07\x1b[2J`);
    expect(all).toContain('<U+202E>');
    expect(all).not.toContain('this is a bug');
  });
});
