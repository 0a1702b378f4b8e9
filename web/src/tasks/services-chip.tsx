// web/src/tasks/services-chip.tsx: chooses the project's services for a task. All of them run by default.
import { Database } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiConfiguredServices } from '../../../src/protocol/api/services.ts';
import { useProjectServices } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { ChipMenu, MenuCheckbox, MenuGroup } from '../ui/menu.tsx';
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
  const shown = servicesLabel(services, off);
  const toggle = (name: string, on: boolean): void =>
    onChange({ servicesOff: on ? off.filter((one) => one !== name) : [...off, name] });
  return (
    <ChipMenu name="services" icon={<Database size={14} aria-hidden className="shrink-0 text-muted" />} shown={shown}>
      <MenuGroup label="Services for each task">
        {services.map(({ name, kind, problem }) => (
          <MenuCheckbox key={name} checked={!off.includes(name)} onChange={(on) => toggle(name, on)}>
            <span className="block">{cleanLine(name)}</span>
            <span className={`block text-xs ${problem === null ? 'text-muted' : 'text-bad'}`}>
              {cleanLine(problem ?? kind, 300)}
            </span>
          </MenuCheckbox>
        ))}
      </MenuGroup>
    </ChipMenu>
  );
}

function servicesLabel(services: ApiConfiguredServices['services'], off: readonly string[]): string {
  const on = services.filter(({ name }) => !off.includes(name));
  if (on.length === 0) return 'no services';
  return on.length > 2 ? plural(on.length, 'service') : on.map(({ name }) => cleanLine(name)).join(', ');
}
