// web/src/tasks/choices.ts: how tasks are started: what was chosen last, for each project.
import type { ApiAbout, StartTasks } from '../../../src/protocol/api/api.ts';
import { useKept } from '../look/preferences.ts';
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
  /** Configured services that are left out. */
  readonly servicesOff: readonly string[];
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
  servicesOff: [],
};

const NONE: Partial<Choices> = {};

export function useChoices(project: string): [Choices, (change: Partial<Choices>) => void] {
  const [kept, keep] = useKept<Partial<Choices>>(`choices.${project}`, NONE);
  const choices = { ...FIRST, ...kept };
  return [choices, (change) => keep((now) => ({ ...FIRST, ...now, ...change }))];
}

/** Who will do it: what was chosen, what the configuration says, or the first agent that could begin right away. */
export function agentsOf(choices: Choices, about: ApiAbout | undefined): readonly string[] {
  if (about === undefined) return [];
  const known = choices.agents.filter((name) => about.agents.some((agent) => agent.name === name));
  if (known.length > 0) return known;
  const ready = (wanted: string): string | undefined =>
    about.agents.find(({ installed, signedIn }) => installed && signedIn === wanted)?.name;
  const first = about.defaults.agent ?? ready('yes') ?? ready('not-needed');
  return first === undefined ? [] : [first];
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

export function toStart(
  project: string,
  goals: StartTasks['goals'],
  agents: readonly string[],
  choices: Choices,
  services: readonly string[],
): StartTasks {
  const left = services.filter((name) => !choices.servicesOff.includes(name));
  return {
    project,
    goals,
    agents: [...agents],
    attempts: choices.attempts,
    base: choices.base,
    model: choices.model,
    maxSeconds: choices.minutes === null ? null : choices.minutes * 60,
    maxCostMicros: choices.dollars === null ? null : Math.round(choices.dollars * 1_000_000),
    maxTurns: choices.turns,
    ...(choices.network === null ? {} : { network: choices.network }),
    ...(left.length === services.length ? {} : { services: left }),
  };
}
