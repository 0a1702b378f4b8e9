// test/hooks/trust.test.ts: which files are hooks, and that a project's hooks run only with the exact content that the user approved.
// uses: sandbox
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkHooks } from '../../src/agent-run/run-hooks.ts';
import { createMachine, HAS_SANDBOX, USUAL } from '../harness.ts';
import { COMMAND, createHookPlace } from './fixture.ts';

const YES = '#!/bin/sh\nexit 0\n';
const NO = '#!/bin/sh\nexit 2\n';
const short = (content: string): string => createHash('sha256').update(content).digest('hex').slice(0, 12);

const problem = (act: () => unknown): { code: string; message: string; hint: string | undefined } => {
  try {
    act();
  } catch (error) {
    const { code, message, hint } = error as { code: string; message: string; hint: string | undefined };
    return { code, message, hint };
  }
  throw new Error('expected an error');
};

describe('hooks of a project', () => {
  test('are refused until approved, each with its content', async () => {
    await using at = createHookPlace();
    at.file('.ags/hooks/pre-bash', YES);
    at.file('.ags/hooks/post-stop.d/tests', NO);
    expect(problem(() => checkHooks(at.context, at.project))).toEqual({
      code: 'config.untrusted',
      message:
        'This project has hooks that you have not approved:\n' +
        `  .ags/hooks/pre-bash: run on this machine before every command of an agent (sha256 ${short(YES)})\n` +
        `  .ags/hooks/post-stop.d/tests: run on this machine when an agent is done (sha256 ${short(NO)})`,
      hint: 'Review them. To let them run on this machine: ags trust',
    });
    await expect(at.open()).rejects.toMatchObject({ code: 'config.untrusted' });
    at.trust();
    const hooks = await at.open();
    expect(await hooks.gate(COMMAND)).toEqual({ allow: true });
  });

  test('need a new approval after any change, with a new file, or in another place', async () => {
    await using at = createHookPlace();
    const path = join(at.project, '.ags/hooks/pre-bash');
    at.file('.ags/hooks/pre-bash', YES);
    at.trust();
    checkHooks(at.context, at.project);
    const untrusted = (): string =>
      problem(() => checkHooks(at.context, at.project))
        .message.split('\n')
        .slice(1)
        .join('');
    writeFileSync(path, `${YES}#`);
    expect(untrusted()).toContain('.ags/hooks/pre-bash: ');
    writeFileSync(path, YES);
    checkHooks(at.context, at.project);
    at.file('.ags/hooks/pre-any', YES);
    expect(untrusted()).toMatch(/^ {2}\.ags\/hooks\/pre-any: [^,]*$/);
    rmSync(path);
    rmSync(join(at.project, '.ags/hooks/pre-any'));
    at.file('.ags/hooks/pre-writes', YES);
    expect(untrusted()).toContain('.ags/hooks/pre-writes: ');
    rmSync(join(at.project, '.ags'), { recursive: true });
    checkHooks(at.context, at.project);
  });

  test('an approval of a project does not cover its copy', async () => {
    await using at = createHookPlace();
    at.file('.ags/hooks/pre-bash', YES);
    at.trust();
    renameSync(at.project, `${at.project}-2`);
    expect(problem(() => checkHooks(at.context, `${at.project}-2`)).code).toBe('config.untrusted');
  });
});

describe('invalid hooks are an error', () => {
  const cases: [string, (path: string, project: string) => void, string][] = [
    ['a symbolic link', (path) => symlinkSync('/bin/true', path), '.ags/hooks/pre-bash is a symbolic link.'],
    ['a broken link', (path) => symlinkSync('/nonexistent', path), '.ags/hooks/pre-bash is a symbolic link.'],
    ['not executable', (path) => writeFileSync(path, YES), '.ags/hooks/pre-bash is not executable.'],
    ['a directory', (path) => mkdirSync(path), '.ags/hooks/pre-bash is not a regular file.'],
    [
      'writable by all',
      (path) => {
        writeFileSync(path, YES);
        chmodSync(path, 0o777);
      },
      '.ags/hooks/pre-bash can be written by every user of this machine.',
    ],
    [
      'in a directory writable by all',
      (path, project) => {
        writeFileSync(path, YES, { mode: 0o755 });
        chmodSync(join(project, '.ags/hooks'), 0o777);
      },
      '.ags/hooks can be written by every user of this machine.',
    ],
    ['empty', (path) => writeFileSync(path, '', { mode: 0o755 }), '.ags/hooks/pre-bash is empty.'],
    [
      'larger than any hook',
      (path) => writeFileSync(path, Buffer.alloc(5 * 2 ** 20), { mode: 0o755 }),
      '.ags/hooks/pre-bash has more than 4 MB.',
    ],
    [
      'at an unknown point',
      (path) => writeFileSync(path.replace('pre-bash', 'pre-comand'), YES, { mode: 0o755 }),
      '.ags/hooks/pre-comand is not the name of a hook; known names: pre-any, pre-bash, pre-writes, post-writes, post-stop.',
    ],
    [
      'with control characters in its name',
      (path) => {
        mkdirSync(`${path}.d`);
        writeFileSync(`${path}.d/\u001b[2J`, YES);
      },
      '.ags/hooks/pre-bash.d/\\x1b[2J is not executable.',
    ],
    [
      'a file in place of a .d directory',
      (path) => writeFileSync(`${path}.d`, YES, { mode: 0o755 }),
      '.ags/hooks/pre-bash.d is not a directory.',
    ],
    [
      'a link in place of a hooks directory',
      (_path, project) => {
        rmSync(join(project, '.ags'), { recursive: true });
        mkdirSync(join(project, 'elsewhere/hooks'), { recursive: true });
        symlinkSync('elsewhere', join(project, '.ags'));
      },
      '.ags is a symbolic link.',
    ],
  ];
  test.each(cases)('%s', async (_name, make, message) => {
    await using at = createHookPlace();
    mkdirSync(join(at.project, '.ags/hooks'), { recursive: true });
    chmodSync(join(at.project, '.ags/hooks'), 0o755);
    make(join(at.project, '.ags/hooks/pre-bash'), at.project);
    expect(problem(() => checkHooks(at.context, at.project))).toMatchObject({ code: 'config.invalid', message });
  });

  test("also among the user's own hooks, which must belong to the user", async () => {
    await using at = createHookPlace();
    at.own('pre-bash', YES, 0o644);
    expect(problem(() => checkHooks(at.context, at.project)).message).toBe(
      '~/.config/ags/hooks/pre-bash is not executable.',
    );
    at.own('pre-bash', YES);
    checkHooks(at.context, at.project);
    const file = join(at.context.home, '.config/ags/hooks/pre-bash');
    if (at.context.uid === 0) chownSync(file, 7007, 7007);
    const uid = at.context.uid === 0 ? 0 : at.context.uid + 1;
    expect(problem(() => checkHooks({ ...at.context, uid }, at.project)).message).toMatch(
      /^~\/\.config\/ags\/hooks(\/pre-bash)? belongs to another user\.$/,
    );
  });
});

describe.each(USUAL)('ags trust, as %s', (caller) => {
  test.runIf(HAS_SANDBOX)('shows and approves hook files together with the requests of ags.yaml', async () => {
    using machine = createMachine(caller);
    machine.write('.ags/hooks/pre-bash', YES, 0o755);
    machine.write(
      'ags.yaml',
      'hooks:\n  pre-any:\n    - run: [my-check, "a b"]\n      timeout: 5s\n    - { run: ./inside, inside: true }\n',
    );
    const asked = await machine.ags(['trust', '--json']);
    expect(JSON.parse(asked.stdout)).toMatchObject({
      asks: [
        'ags.yaml:3: hooks.pre-any: run on this machine before whatever an agent does: ["my-check","a b"] for up to 5s',
        `.ags/hooks/pre-bash: run on this machine before every command of an agent (sha256 ${short(YES)})`,
      ],
      approved: false,
    });
    // Commands without an agent need only the approval of ags.yaml.
    expect((await machine.ags(['config'])).stderr).toContain('hooks.pre-any');
    const approved = await machine.ags(['trust', '--yes']);
    expect([approved.code, approved.stderr]).toEqual([
      0,
      `${machine.project} asks for:\n` +
        '  ags.yaml:3: hooks.pre-any: run on this machine before whatever an agent does: ["my-check","a b"] for up to 5s\n' +
        `  .ags/hooks/pre-bash: run on this machine before every command of an agent (sha256 ${short(YES)})\n` +
        '    | #!/bin/sh\n    | exit 0\n' +
        'Approved. If the content changes, ags asks again.\n',
    ]);
    expect((await machine.ags(['trust'])).stderr).toContain('Already approved:');
    const stored = JSON.parse(readFileSync(join(machine.stateDir, 'trust.json'), 'utf8')) as {
      projects: Record<string, { hooks: Record<string, string> }>;
    };
    expect(stored.projects[machine.project]?.hooks['.ags/hooks/pre-bash']).toHaveLength(64);
    machine.write('.ags/hooks/pre-bash', `${YES}#`, 0o755);
    expect(JSON.parse((await machine.ags(['trust', '--json'])).stdout)).toMatchObject({ approved: false });
    expect((await machine.ags(['exec', 'true'])).code).toBe(0);
  });
});
