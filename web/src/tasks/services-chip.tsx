// web/src/tasks/services-chip.tsx: which of the project's services run beside a task. All of them, unless somebody says otherwise.
import { Menu as Base } from '@base-ui/react/menu';
import { Check, ChevronDown, Database } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiConfiguredServices } from '../../../src/protocol/api/services.ts';
import { useProjectServices } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { CHIP } from '../ui/menu.tsx';
import { OVER } from '../ui/over.ts';
import type { Choices } from './choices.ts';

export function ServicesChip({
  project,
  choices,
  onChange,
}: {
  project: string;
  choices: Choices;
  onChange: (change: Partial<Choices>) => void;
}): ReactNode {
  const { data } = useProjectServices(project);
  const services = data?.services ?? [];
  if (services.length === 0) return null;
  const off = choices.servicesOff;
  const shown = inWords(services, off);
  const toggle = (name: string, on: boolean): void =>
    onChange({ servicesOff: on ? off.filter((one) => one !== name) : [...off, name] });
  return (
    <Base.Root>
      <Base.Trigger className={CHIP} aria-label={`${shown}: services`}>
        <Database size={14} aria-hidden className="shrink-0 text-muted" />
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-muted" />
      </Base.Trigger>
      <Base.Portal container={OVER}>
        <Base.Positioner sideOffset={4} align="start" className="z-40 outline-none">
          <Base.Popup className="max-h-[min(24rem,var(--available-height))] max-w-80 min-w-56 overflow-y-auto rounded-lg border border-line bg-bg p-1 shadow-pop outline-none">
            <Base.Group>
              <Base.GroupLabel className="px-2 py-1 text-xs text-muted">Services beside each task</Base.GroupLabel>
              {services.map(({ name, kind, problem }) => (
                <Base.CheckboxItem
                  key={name}
                  checked={!off.includes(name)}
                  onCheckedChange={(on) => toggle(name, on)}
                  className="flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 py-1 outline-none select-none data-highlighted:bg-raised"
                >
                  <span className="flex size-4 shrink-0 items-center justify-center rounded-sm border border-line-strong">
                    <Base.CheckboxItemIndicator>
                      <Check size={12} aria-hidden />
                    </Base.CheckboxItemIndicator>
                  </span>
                  <span className="min-w-0 grow">
                    <span className="block">{cleanLine(name)}</span>
                    <span className={`block text-xs ${problem === null ? 'text-muted' : 'text-bad'}`}>
                      {cleanLine(problem ?? kind, 300)}
                    </span>
                  </span>
                </Base.CheckboxItem>
              ))}
            </Base.Group>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

function inWords(services: ApiConfiguredServices['services'], off: readonly string[]): string {
  const on = services.filter(({ name }) => !off.includes(name));
  if (on.length === 0) return 'no services';
  return on.length > 2 ? plural(on.length, 'service') : on.map(({ name }) => cleanLine(name)).join(', ');
}
