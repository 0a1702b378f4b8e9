// web/src/ui/button.tsx: things to press. At least 24 pixels each way, with a visible ring when they have the focus.
import { Link } from '@tanstack/react-router';
import type { LinkProps } from '@tanstack/react-router';
import type { ComponentProps, ReactNode } from 'react';

type Look = 'primary' | 'plain' | 'quiet' | 'danger';
type Size = 'normal' | 'small';

const LOOKS: Readonly<Record<Look, string>> = {
  primary: 'border-accent bg-accent text-on-accent hover:opacity-90 font-medium',
  plain: 'border-line bg-bg text-text hover:bg-raised',
  quiet: 'border-transparent text-muted hover:bg-raised hover:text-text',
  danger: 'border-line bg-bg text-bad hover:bg-bad-bg',
};
const SIZES: Readonly<Record<Size, string>> = { normal: 'h-8 px-3 gap-2 text-base', small: 'h-6 px-2 gap-1.5 text-xs' };

export function buttonClass(look: Look = 'plain', size: Size = 'normal'): string {
  return `inline-flex shrink-0 items-center justify-center rounded-md border whitespace-nowrap select-none disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:opacity-50 ${LOOKS[look]} ${SIZES[size]}`;
}

type ButtonProps = ComponentProps<'button'> & { look?: Look; size?: Size };

export function Button({ look, size, className = '', ...rest }: ButtonProps): ReactNode {
  return <button type="button" {...rest} className={`${buttonClass(look, size)} ${className}`} />;
}

/** A picture alone: its name is for those who do not see it, and for who rests on it. */
export function IconButton({
  label,
  className = '',
  size = 'normal',
  ...rest
}: ButtonProps & { label: string }): ReactNode {
  const side = size === 'normal' ? 'w-8 px-0' : 'w-6 px-0';
  return (
    <Button look="quiet" size={size} aria-label={label} title={label} {...rest} className={`${side} ${className}`} />
  );
}

export function LinkButton({
  look,
  size,
  className = '',
  children,
  ...rest
}: LinkProps & { look?: Look; size?: Size; className?: string; children: ReactNode; title?: string }): ReactNode {
  return (
    <Link {...rest} className={`${buttonClass(look, size)} ${className}`}>
      {children}
    </Link>
  );
}
