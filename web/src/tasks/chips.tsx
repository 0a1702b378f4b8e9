// web/src/tasks/chips.tsx: one chip for each start option, showing the last choice.
import { Popover } from '@base-ui/react/popover';
import { Bot, Check, ChevronDown, Copy, Gauge, GitBranch, Globe } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiAgent } from '../../../src/protocol/api/api.ts';
import { useAbout, useBranches } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { TextField } from '../ui/fields.tsx';
import { CHIP, ChipMenu, ChoiceChip, MenuCheckbox, MenuGroup, MenuItem, OVERLAY } from '../ui/menu.tsx';
import { agentsOf, formatLimits } from './choices.ts';
import type { Choices } from './choices.ts';
import { ServicesChip } from './services-chip.tsx';

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
  return agent.signedIn === 'expired' ? 'Sign-in expired' : agent.version;
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
    <ChipMenu name="agent" icon={<Bot size={14} aria-hidden className="shrink-0 text-muted" />} shown={shown}>
      <MenuGroup label="Agent">
        {agents.map((agent) => (
          <MenuItem key={agent.name} onPick={() => onChange({ agents: [agent.name] })}>
            <span className="flex items-center gap-2">
              <span className="min-w-0 grow">
                <span className="block">{cleanLine(agent.title)}</span>
                <span className="block text-xs text-muted">{cleanLine(agentNote(agent) ?? '')}</span>
              </span>
              {chosen.includes(agent.name) ? <Check size={14} aria-label="selected" /> : null}
            </span>
          </MenuItem>
        ))}
      </MenuGroup>
      <MenuGroup label="Run several agents on each goal">
        {agents
          .filter(({ installed }) => installed)
          .map((agent) => (
            <MenuCheckbox
              key={agent.name}
              checked={chosen.includes(agent.name)}
              onChange={(on) => toggle(agent.name, on)}
            >
              {cleanLine(agent.title)}
            </MenuCheckbox>
          ))}
      </MenuGroup>
    </ChipMenu>
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
        { value: '', label: 'Current branch', note: data?.current == null ? null : cleanLine(data.current) },
        ...names.map((name) => ({ value: name, label: cleanLine(name) })),
      ]}
      onChange={(base) => onChange({ base: base === '' ? null : base })}
    />
  );
}

function AttemptsChip({ choices, onChange }: ChipProps): ReactNode {
  return (
    <ChoiceChip
      name="parallel attempts per goal"
      icon={<Copy size={14} aria-hidden className="shrink-0 text-muted" />}
      value={String(choices.attempts)}
      shown={plural(choices.attempts, 'attempt')}
      choices={[1, 2, 3, 4].map((count) => ({ value: String(count), label: plural(count, 'attempt') }))}
      onChange={(count) => onChange({ attempts: Number(count) })}
    />
  );
}

const NETWORK = {
  '': { label: 'Project default', shown: 'network: default' },
  on: { label: 'Allow hosts by rule', shown: 'network: rules' },
  record: { label: 'Ask me about unknown hosts', shown: 'network: ask' },
  off: { label: 'No network', shown: 'network: off' },
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

const LIMITS = [
  ['minutes', 'Minutes'],
  ['dollars', 'Dollars'],
  ['turns', 'Agent turns'],
] as const;

function LimitChip({ choices, onChange }: ChipProps): ReactNode {
  const shown = formatLimits(choices);
  return (
    <Popover.Root modal>
      <Popover.Trigger className={CHIP} aria-label={`${shown}: limits`}>
        <Gauge size={14} aria-hidden className="shrink-0 text-muted" />
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-muted" />
      </Popover.Trigger>
      <Popover.Portal container={OVERLAY}>
        <Popover.Positioner sideOffset={4} align="start" className="z-40">
          <Popover.Popup className="flex w-72 flex-col gap-3 rounded-lg border border-line bg-bg p-4 shadow-pop outline-none">
            <Popover.Title className="font-medium">Limits per task</Popover.Title>
            {LIMITS.map(([limit, label]) => (
              <TextField
                key={limit}
                label={label}
                type="number"
                value={choices[limit]?.toString() ?? ''}
                onChange={(text) => onChange({ [limit]: Number(text) > 0 ? Number(text) : null })}
                placeholder="project default"
              />
            ))}
            <TextField
              label="Model"
              mono
              value={choices.model ?? ''}
              onChange={(text) => onChange({ model: text.trim() === '' ? null : text.trim() })}
              placeholder="agent default"
            />
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
