// web/src/ui/menu.tsx: a list of things to do, or of values to choose one from, behind a button.
import { Menu as Base } from '@base-ui/react/menu';
import { Check, ChevronDown } from 'lucide-react';
import type { ReactElement, ReactNode } from 'react';
import { OVER } from './over.ts';

const POPUP =
  'max-h-[min(24rem,var(--available-height))] min-w-44 max-w-80 overflow-y-auto rounded-lg border border-line bg-bg p-1 text-base shadow-pop outline-none';
const ITEM =
  'flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 py-1 select-none outline-none data-highlighted:bg-raised data-disabled:text-muted data-disabled:opacity-60';

export function Menu({ trigger, children }: { trigger: ReactElement; children: ReactNode }): ReactNode {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal container={OVER}>
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
  hint,
  disabled = false,
  danger = false,
  children,
}: {
  onPick: () => void;
  icon?: ReactNode;
  hint?: ReactNode;
  disabled?: boolean;
  danger?: boolean;
  children: ReactNode;
}): ReactNode {
  return (
    <Base.Item disabled={disabled} onClick={onPick} className={`${ITEM} ${danger ? 'text-bad' : ''}`}>
      {icon}
      <span className="grow">{children}</span>
      {hint}
    </Base.Item>
  );
}

export interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly note?: string | null;
  readonly disabled?: boolean;
}

/** A chip that shows the value and opens the others. */
export function ChoiceChip<T extends string>({
  name,
  icon,
  value,
  shown,
  choices,
  onChange,
}: {
  name: string;
  icon?: ReactNode;
  value: T;
  shown: string;
  choices: readonly Choice<T>[];
  onChange: (value: T) => void;
}): ReactNode {
  return (
    <Base.Root>
      <Base.Trigger className={CHIP} aria-label={`${shown}: ${name}`}>
        {icon}
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} aria-hidden className="shrink-0 text-muted" />
      </Base.Trigger>
      <Base.Portal container={OVER}>
        <Base.Positioner sideOffset={4} align="start" className="z-40 outline-none">
          <Base.Popup className={POPUP}>
            <Base.Group>
              <Base.GroupLabel className="px-2 py-1 text-xs text-muted">{name}</Base.GroupLabel>
              <Base.RadioGroup value={value} onValueChange={(next) => onChange(next as T)}>
                {choices.map((choice) => (
                  <Base.RadioItem
                    key={choice.value}
                    value={choice.value}
                    disabled={choice.disabled ?? false}
                    closeOnClick
                    className={ITEM}
                  >
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
            </Base.Group>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

export const CHIP =
  'inline-flex h-7 max-w-56 min-w-0 items-center gap-1.5 rounded-md border border-line bg-bg px-2 text-sm text-text hover:bg-raised data-popup-open:bg-raised';
