// web/src/tasks/chips.tsx: what a task is started with, one chip for each, with what was chosen last.
import { Menu as Base } from '@base-ui/react/menu';
import { Popover } from '@base-ui/react/popover';
import { Bot, Check, ChevronDown, Copy, Gauge, GitBranch, Globe } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiAgent } from '../../../src/protocol/api/api.ts';
import { useAbout, useBranches } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { TextField } from '../ui/fields.tsx';
import { CHIP, ChoiceChip } from '../ui/menu.tsx';
import { agentsOf, limitsInWords } from './choices.ts';
import type { Choices } from './choices.ts';
import { ServicesChip } from './services-chip.tsx';
import { OVER } from '../ui/over.ts';

interface ChipProps {
  readonly project: string;
  readonly choices: Choices;
  readonly onChange: (change: Partial<Choices>) => void;
}

export function Chips(props: ChipProps): ReactNode {
  return (
    <div className="flex min-w-0 flex-wrap gap-1.5">
      <AgentChip {...props} />
      <BaseChip {...props} />
      <AttemptsChip {...props} />
      <LimitChip {...props} />
      <NetworkChip {...props} />
      <ServicesChip {...props} />
    </div>
  );
}

function agentNote(agent: ApiAgent): string | null {
  if (!agent.installed) return 'Not installed';
  if (agent.signedIn === 'no') return 'Not signed in';
  return agent.signedIn === 'expired' ? 'Sign-in has expired' : agent.version;
}

function AgentChip({ choices, onChange }: ChipProps): ReactNode {
  const { data: about } = useAbout();
  const agents = about?.agents ?? [];
  const chosen = agentsOf(choices, about);
  const shown =
    chosen.length === 1
      ? cleanLine(agents.find(({ name }) => name === chosen[0])?.title ?? chosen[0] ?? '')
      : chosen.length === 0
        ? 'Choose an agent'
        : `${chosen.length} agents`;
  const toggle = (name: string, on: boolean): void => {
    const next = on ? [...chosen, name] : chosen.filter((one) => one !== name);
    if (next.length > 0) onChange({ agents: next });
  };
  return (
    <Base.Root>
      <Base.Trigger className={CHIP} aria-label={`${shown}: agent`}>
        <Bot size={14} aria-hidden className="text-muted" />
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} aria-hidden className="text-muted" />
      </Base.Trigger>
      <Base.Portal container={OVER}>
        <Base.Positioner sideOffset={4} align="start" className="z-40 outline-none">
          <Base.Popup className="max-h-[min(24rem,var(--available-height))] min-w-56 overflow-y-auto rounded-lg border border-line bg-bg p-1 shadow-pop outline-none">
            <Base.Group>
              <Base.GroupLabel className="px-2 py-1 text-xs text-muted">
                Agent; with several, each does every goal
              </Base.GroupLabel>
              {agents.map((agent) => (
                <Base.Item
                  key={agent.name}
                  onClick={() => onChange({ agents: [agent.name] })}
                  className="flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 py-1 outline-none select-none data-highlighted:bg-raised"
                >
                  <span className="min-w-0 grow">
                    <span className="block">{cleanLine(agent.title)}</span>
                    <span className="block text-xs text-muted">{cleanLine(agentNote(agent) ?? '')}</span>
                  </span>
                  {chosen.includes(agent.name) ? <Check size={14} aria-label="chosen" /> : null}
                </Base.Item>
              ))}
            </Base.Group>
            <Base.Separator className="my-1 border-t border-line" />
            <Base.Group>
              <Base.GroupLabel className="px-2 py-1 text-xs text-muted">Several at once</Base.GroupLabel>
              {agents
                .filter(({ installed }) => installed)
                .map((agent) => (
                  <Base.CheckboxItem
                    key={agent.name}
                    checked={chosen.includes(agent.name)}
                    onCheckedChange={(on) => toggle(agent.name, on)}
                    className="flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 py-1 outline-none select-none data-highlighted:bg-raised"
                  >
                    <span className="flex size-4 items-center justify-center rounded-sm border border-line-strong">
                      <Base.CheckboxItemIndicator>
                        <Check size={12} aria-hidden />
                      </Base.CheckboxItemIndicator>
                    </span>
                    {cleanLine(agent.title)}
                  </Base.CheckboxItem>
                ))}
            </Base.Group>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

function BaseChip({ project, choices, onChange }: ChipProps): ReactNode {
  const { data } = useBranches(project);
  const names = [...new Set([...(data?.current == null ? [] : [data.current]), ...(data?.branches ?? [])])];
  const shown = choices.base !== null && names.includes(choices.base) ? choices.base : data?.current;
  return (
    <ChoiceChip
      name="start from"
      icon={<GitBranch size={14} aria-hidden className="shrink-0 text-muted" />}
      value={choices.base ?? ''}
      shown={`from ${cleanLine(shown ?? 'HEAD', 60)}`}
      choices={[
        { value: '', label: 'What is checked out', note: data?.current == null ? null : cleanLine(data.current) },
        ...names.map((name) => ({ value: name, label: cleanLine(name) })),
      ]}
      onChange={(base) => onChange({ base: base === '' ? null : base })}
    />
  );
}

function AttemptsChip({ choices, onChange }: ChipProps): ReactNode {
  return (
    <ChoiceChip
      name="attempts at each goal, side by side"
      icon={<Copy size={14} aria-hidden className="shrink-0 text-muted" />}
      value={String(choices.attempts)}
      shown={plural(choices.attempts, 'attempt')}
      choices={[1, 2, 3, 4].map((count) => ({ value: String(count), label: plural(count, 'attempt') }))}
      onChange={(count) => onChange({ attempts: Number(count) })}
    />
  );
}

const NETWORK = {
  '': { label: 'As the project says', shown: 'network: as set' },
  on: { label: 'Rules decide', shown: 'network: rules' },
  record: { label: 'Ask me about unknown hosts', shown: 'network: ask' },
  off: { label: 'No network at all', shown: 'network: off' },
} as const;

function NetworkChip({ choices, onChange }: ChipProps): ReactNode {
  const value = choices.network ?? '';
  return (
    <ChoiceChip
      name="network"
      icon={<Globe size={14} aria-hidden className="shrink-0 text-muted" />}
      value={value}
      shown={NETWORK[value].shown}
      choices={(['', 'on', 'record', 'off'] as const).map((one) => ({ value: one, label: NETWORK[one].label }))}
      onChange={(next) => onChange({ network: next === '' ? null : next })}
    />
  );
}

function LimitChip({ choices, onChange }: ChipProps): ReactNode {
  const shown = limitsInWords(choices);
  const number = (text: string): number | null => (Number(text) > 0 ? Number(text) : null);
  return (
    <Popover.Root modal>
      <Popover.Trigger className={CHIP} aria-label={`${shown}: limits`}>
        <Gauge size={14} aria-hidden className="shrink-0 text-muted" />
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-muted" />
      </Popover.Trigger>
      <Popover.Portal container={OVER}>
        <Popover.Positioner sideOffset={4} align="start" className="z-40">
          <Popover.Popup className="flex w-72 flex-col gap-3 rounded-lg border border-line bg-bg p-4 shadow-pop outline-none">
            <Popover.Title className="font-medium">Limits of each task</Popover.Title>
            <TextField
              label="Minutes"
              type="number"
              value={choices.minutes?.toString() ?? ''}
              onChange={(text) => onChange({ minutes: number(text) })}
              placeholder="as the project says"
            />
            <TextField
              label="Dollars"
              type="number"
              value={choices.dollars?.toString() ?? ''}
              onChange={(text) => onChange({ dollars: number(text) })}
              placeholder="as the project says"
            />
            <TextField
              label="Turns of the agent"
              type="number"
              value={choices.turns?.toString() ?? ''}
              onChange={(text) => onChange({ turns: number(text) })}
              placeholder="as the project says"
            />
            <TextField
              label="Model"
              mono
              value={choices.model ?? ''}
              onChange={(text) => onChange({ model: text.trim() === '' ? null : text.trim() })}
              placeholder="the agent’s own choice"
            />
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
