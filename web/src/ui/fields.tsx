// web/src/ui/fields.tsx: text fields, checkboxes and segmented controls.
import { Checkbox as BaseCheckbox } from '@base-ui/react/checkbox';
import { Check, Minus } from 'lucide-react';
import { useEffect, useId, useRef } from 'react';
import type { ReactNode, Ref } from 'react';

export const FIELD =
  'w-full rounded-md border border-line-strong bg-bg px-3 text-text placeholder:text-muted focus-visible:outline-2 focus-visible:-outline-offset-1 focus-visible:outline-accent';

export function TextField({
  label,
  value,
  onChange,
  placeholder,
  about,
  mono = false,
  type = 'text',
  ready = false,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  about?: string;
  mono?: boolean;
  type?: 'text' | 'number';
  /** Takes focus when it appears. */
  ready?: boolean;
}): ReactNode {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (ready) field.current?.focus();
  }, [ready]);
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {label}
      </label>
      <input
        ref={field}
        id={id}
        type={type}
        value={value}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        aria-describedby={about === undefined ? undefined : `${id}-about`}
        onChange={(event) => onChange(event.target.value)}
        className={`${FIELD} h-9 ${mono ? 'font-mono text-sm' : ''}`}
      />
      {about === undefined ? null : (
        <p id={`${id}-about`} className="mt-1 text-xs text-muted">
          {about}
        </p>
      )}
    </div>
  );
}

export function SearchField({
  label,
  value,
  onChange,
  fieldRef,
  className = '',
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  fieldRef?: Ref<HTMLInputElement>;
  className?: string;
}): ReactNode {
  return (
    <input
      ref={fieldRef}
      type="search"
      aria-label={label}
      placeholder={label}
      value={value}
      spellCheck={false}
      onChange={(event) => onChange(event.target.value)}
      className={`h-8 rounded-md border border-line bg-bg px-3 text-text placeholder:text-muted ${className}`}
    />
  );
}

export function Checkbox({
  checked,
  onChange,
  label,
  mixed = false,
  disabled = false,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  label: string;
  mixed?: boolean;
  disabled?: boolean;
}): ReactNode {
  return (
    <BaseCheckbox.Root
      checked={checked}
      indeterminate={mixed}
      disabled={disabled}
      onCheckedChange={onChange}
      aria-label={label}
      className="group inline-flex size-6 shrink-0 items-center justify-center rounded-sm data-disabled:opacity-50"
    >
      <span className="flex size-4 items-center justify-center rounded-sm border border-line-strong bg-bg text-on-accent group-data-checked:border-accent group-data-checked:bg-accent group-data-indeterminate:border-accent group-data-indeterminate:bg-accent">
        <BaseCheckbox.Indicator className="flex">
          {mixed ? <Minus size={12} strokeWidth={3} aria-hidden /> : <Check size={12} strokeWidth={3} aria-hidden />}
        </BaseCheckbox.Indicator>
      </span>
    </BaseCheckbox.Root>
  );
}

export function Segments<T extends string>({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  value: T;
  choices: readonly { value: T; label: string; count?: number }[];
  onChange: (value: T) => void;
}): ReactNode {
  return (
    <div role="group" aria-label={label} className="inline-flex flex-wrap gap-0.5 rounded-md bg-raised p-0.5">
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChange(choice.value)}
          className="h-6 rounded-sm px-2 text-sm text-muted hover:text-text aria-pressed:bg-bg aria-pressed:font-medium aria-pressed:text-text"
        >
          {choice.label}
          {choice.count === undefined ? null : <span className="tabular ml-1.5 text-muted">{choice.count}</span>}
        </button>
      ))}
    </div>
  );
}
