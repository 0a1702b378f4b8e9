// web/src/tasks/choices.ts: how tasks are started: what was chosen last, for each project.
import type { StartTasks } from '../../../src/protocol/api.ts';
import { usePreference } from '../look/preferences.ts';
import { duration, money, plural } from '../text/format.ts';

export interface Choices {
  /** Empty: the one that the configuration names. */
  readonly agents: readonly string[];
  readonly base: string | null;
  readonly attempts: number;
  readonly minutes: number | null;
  readonly dollars: number | null;
  readonly turns: number | null;
  readonly model: string | null;
  readonly network: 'on' | 'off' | 'record' | null;
}

const FIRST: Choices = {
  agents: [],
  base: null,
  attempts: 1,
  minutes: null,
  dollars: null,
  turns: null,
  model: null,
  network: null,
};

export function useChoices(project: string): [Choices, (change: Partial<Choices>) => void] {
  const [kept, keep] = usePreference<Partial<Choices>>(`choices.${project}`, {});
  const choices = { ...FIRST, ...kept };
  return [choices, (change) => keep({ ...choices, ...change })];
}

export function limitsInWords({ minutes, dollars, turns, model }: Choices): string {
  const parts = [
    minutes === null ? '' : duration(minutes * 60_000),
    dollars === null ? '' : money(dollars * 1_000_000),
    turns === null ? '' : plural(turns, 'turn'),
    model ?? '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'no limit' : parts.join(', ');
}

export function toStart(project: string, goals: StartTasks['goals'], choices: Choices): StartTasks {
  return {
    project,
    goals,
    agents: [...choices.agents],
    attempts: choices.attempts,
    base: choices.base,
    model: choices.model,
    maxSeconds: choices.minutes === null ? null : choices.minutes * 60,
    maxCostMicros: choices.dollars === null ? null : Math.round(choices.dollars * 1_000_000),
    maxTurns: choices.turns,
    ...(choices.network === null ? {} : { network: choices.network }),
  };
}
