// web/src/tasks/choices.ts: the start options of tasks. The last choice is remembered per project.
import type { ApiAbout, StartTasks } from '../../../src/protocol/api/api.ts';
import { useStored } from '../look/preferences.ts';
import { duration, money, plural } from '../text/format.ts';

export interface Choices {
  /** Empty: the configured default. */
  readonly agents: readonly string[];
  readonly base: string | null;
  readonly attempts: number;
  readonly minutes: number | null;
  readonly dollars: number | null;
  readonly turns: number | null;
  readonly model: string | null;
  readonly network: 'on' | 'off' | 'record' | null;
  /** Configured services to leave out. */
  readonly servicesOff: readonly string[];
}

const DEFAULTS: Choices = {
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
  const [kept, keep] = useStored<Partial<Choices>>(`choices.${project}`, NONE);
  const choices = { ...DEFAULTS, ...kept };
  return [choices, (change) => keep((now) => ({ ...DEFAULTS, ...now, ...change }))];
}

/** The chosen agents, the configured default, or the first agent that is ready to run. */
export function agentsOf(choices: Choices, about: ApiAbout | undefined): readonly string[] {
  if (about === undefined) return [];
  const known = choices.agents.filter((name) => about.agents.some((agent) => agent.name === name));
  if (known.length > 0) return known;
  const ready = (wanted: string): string | undefined =>
    about.agents.find(({ installed, signedIn }) => installed && signedIn === wanted)?.name;
  const first = about.defaults.agent ?? ready('yes') ?? ready('not-needed');
  return first === undefined ? [] : [first];
}

export function formatLimits({ minutes, dollars, turns, model }: Choices): string {
  const parts = [
    minutes === null ? '' : duration(minutes * 60_000),
    dollars === null ? '' : money(dollars * 1_000_000),
    turns === null ? '' : plural(turns, 'turn'),
    model ?? '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'no limits' : parts.join(', ');
}

export function startRequest(
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
