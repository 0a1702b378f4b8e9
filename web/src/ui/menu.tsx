// web/src/ui/menu.tsx: menus of actions, and chips that open a menu of values.
import { Menu as Base } from '@base-ui/react/menu';
import { Check, ChevronDown } from 'lucide-react';
import type { ReactElement, ReactNode } from 'react';

/** Menus and small forms open here: above the page, in a landmark of their own. */
export const OVERLAY = document.querySelector<HTMLElement>('#over');

export const CHIP =
  'inline-flex h-7 max-w-56 min-w-0 items-center gap-1.5 rounded-md border border-line bg-bg px-2 text-sm text-text hover:bg-raised data-popup-open:bg-raised';
const POPUP =
  'max-h-[min(24rem,var(--available-height))] min-w-44 max-w-80 overflow-y-auto rounded-lg border border-line bg-bg p-1 text-base shadow-pop outline-none';
const ITEM =
  'flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 py-1 select-none outline-none data-highlighted:bg-raised data-disabled:text-muted data-disabled:opacity-60';

export function Menu({ trigger, children }: { trigger: ReactElement; children: ReactNode }): ReactNode {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal container={OVERLAY}>
        <Base.Positioner sideOffset={4} align="end" className="z-40 outline-none">
          <Base.Popup className={POPUP}>{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

export function MenuItem({
  onPick,
  icon,
  disabled = false,
  danger = false,
  children,
}: {
  onPick: () => void;
  icon?: ReactNode;
  disabled?: boolean;
  danger?: boolean;
  children: ReactNode;
}): ReactNode {
  return (
    <Base.Item disabled={disabled} onClick={onPick} className={`${ITEM} ${danger ? 'text-bad' : ''}`}>
      {icon}
      <span className="min-w-0 grow">{children}</span>
    </Base.Item>
  );
}

export function MenuCheckbox({
  checked,
  onChange,
  children,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}): ReactNode {
  return (
    <Base.CheckboxItem checked={checked} onCheckedChange={onChange} className={ITEM}>
      <span className="flex size-4 shrink-0 items-center justify-center rounded-sm border border-line-strong">
        <Base.CheckboxItemIndicator>
          <Check size={12} aria-hidden />
        </Base.CheckboxItemIndicator>
      </span>
      <span className="min-w-0 grow">{children}</span>
    </Base.CheckboxItem>
  );
}

export function MenuGroup({ label, children }: { label: string; children: ReactNode }): ReactNode {
  return (
    <Base.Group>
      <Base.GroupLabel className="px-2 py-1 text-xs text-muted first-letter:uppercase">{label}</Base.GroupLabel>
      {children}
    </Base.Group>
  );
}

interface ChipProps {
  readonly name: string;
  readonly icon?: ReactNode;
  readonly shown: string;
}

export function ChipMenu({ name, icon, shown, children }: ChipProps & { children: ReactNode }): ReactNode {
  return (
    <Base.Root>
      <Base.Trigger className={CHIP} aria-label={`${shown}: ${name}`}>
        {icon}
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-muted" />
      </Base.Trigger>
      <Base.Portal container={OVERLAY}>
        <Base.Positioner sideOffset={4} align="start" className="z-40 outline-none">
          <Base.Popup className={POPUP}>{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

export interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly note?: string | null;
}

export function ChoiceChip<T extends string>({
  value,
  choices,
  onChange,
  ...chip
}: ChipProps & {
  value: T;
  choices: readonly Choice<T>[];
  onChange: (value: T) => void;
}): ReactNode {
  return (
    <ChipMenu {...chip}>
      <MenuGroup label={chip.name}>
        <Base.RadioGroup value={value} onValueChange={(next) => onChange(next as T)}>
          {choices.map((choice) => (
            <Base.RadioItem key={choice.value} value={choice.value} closeOnClick className={ITEM}>
              <span className="w-4 shrink-0">
                <Base.RadioItemIndicator>
                  <Check size={14} aria-hidden />
                </Base.RadioItemIndicator>
              </span>
              <span className="min-w-0 grow">
                <span className="block truncate">{choice.label}</span>
                {choice.note == null ? null : <span className="block text-xs text-muted">{choice.note}</span>}
              </span>
            </Base.RadioItem>
          ))}
        </Base.RadioGroup>
      </MenuGroup>
    </ChipMenu>
  );
}
