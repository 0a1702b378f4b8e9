// cli/verbs/doctor.ts: `ags doctor`: one line for each requirement of a sandbox: a sign, a word, and the fix.
import { visible } from '../../lib/sanitize.ts';
import { AgsError, EXIT, flat } from '../../protocol/errors.ts';
import { diagnose, type Answer, type Diagnosis } from '../../housekeeping/doctor.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'check what works on this machine and what does not',
  usage: 'doctor [--attack [--backend <name>]] [--json]',
  takes: 0,
  about:
    'Starts a small sandbox and verifies from inside that every protection is in force. Changes nothing.\nEach problem comes with the command that fixes it. Exits with 0 if "ags exec" works here, else with 9.\nWith --attack, ags runs its table of real attacks inside sandboxes like those of your tasks, with canary files that reveal a breach. Exits with 0 if every attempt was stopped or limited as promised, else with 1. See SECURITY.md.',
  examples: ['ags doctor', 'ags doctor --json', 'ags doctor --attack', 'ags doctor --attack --backend docker'],
  options: {
    attack: { type: 'boolean', about: 'attack a sandbox like those of your tasks, and print the results' },
    backend: { type: 'string', value: 'auto|native|docker|podman', about: 'with --attack: how the sandbox is built' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values }, ctx) {
    if (values['attack'] === true) {
      const { attackHere } = await import('../terminal/attack-report.ts');
      return attackHere(values, ctx);
    }
    if (values['backend'] !== undefined)
      throw new AgsError('usage.invalid', '--backend goes with --attack.', {
        hint: 'Without --attack, doctor checks all backends: ags doctor',
      });
    const diagnosis = await diagnose(ctx.host);
    ctx.stdout.write(
      values['json'] === true ? `${JSON.stringify(diagnosis, null, 2)}\n` : pageOf(diagnosis, ctx.colour),
    );
    return diagnosis.ready ? EXIT.done : EXIT.unavailable;
  },
};
export default verb;

const SIGNS = { ok: '✓', note: '!', missing: '✗' } as const;
const COLOURS = { ok: '32', note: '33', missing: '31' } as const;

function pageOf({ ready, checks }: Diagnosis, colour: boolean): string {
  const groups = [...new Set(checks.map(({ group }) => group))];
  const parts = groups.map(
    (group) =>
      `${group}\n${checks
        .filter((check) => check.group === group)
        .map((check) => lineOf(check, colour))
        .join('')}`,
  );
  const count = checks.filter(({ status }) => status === 'missing').length;
  const end = ready
    ? 'Ready: ags exec works here.'
    : `Not ready: ags exec does not work until you fix the ${count === 1 ? 'line' : `${count} lines`} marked "missing".`;
  return `${parts.join('\n')}\n${end}\n`;
}

function lineOf(check: Answer, colour: boolean): string {
  const mark = `${SIGNS[check.status]} ${check.status.padEnd(7)}`;
  const shown = colour ? `\u001B[${COLOURS[check.status]}m${mark}\u001B[0m` : mark;
  const fix =
    check.status === 'ok'
      ? ''
      : check.fix
          .split('\n')
          .map((line) => `              ${visible(line)}\n`)
          .join('');
  return `  ${shown}   ${visible(flat(check.message))}\n${fix}`;
}
