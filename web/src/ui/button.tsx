// web/src/ui/button.tsx: buttons and links. At least 24 by 24 pixels, with a visible focus ring.
import { Link } from '@tanstack/react-router';
import type { LinkProps } from '@tanstack/react-router';
import { ArrowLeft } from 'lucide-react';
import type { ComponentProps, ReactNode } from 'react';

type Look = 'primary' | 'plain' | 'quiet' | 'danger';
type Size = 'normal' | 'small';

const LOOKS: Readonly<Record<Look, string>> = {
  primary: 'border-accent bg-accent text-on-accent hover:opacity-90 font-medium',
  plain: 'border-line bg-bg text-text hover:bg-raised',
  quiet: 'border-transparent text-muted hover:bg-raised hover:text-text',
  danger: 'border-line bg-bg text-bad hover:bg-bad-bg',
};
const SIZES: Readonly<Record<Size, string>> = { normal: 'h-8 gap-2 text-base', small: 'h-6 gap-1.5 text-xs' };
const WIDTHS: Readonly<Record<Size, string>> = { normal: 'px-3', small: 'px-2' };
const SQUARES: Readonly<Record<Size, string>> = { normal: 'w-8', small: 'w-6' };

function buttonClass(look: Look = 'plain', size: Size = 'normal', square = false): string {
  return `inline-flex shrink-0 items-center justify-center rounded-md border whitespace-nowrap select-none disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:opacity-50 ${LOOKS[look]} ${SIZES[size]} ${square ? SQUARES[size] : WIDTHS[size]}`;
}

type ButtonProps = ComponentProps<'button'> & { look?: Look; size?: Size };

export function Button({ look, size, className = '', ...rest }: ButtonProps): ReactNode {
  return <button type="button" {...rest} className={`${buttonClass(look, size)} ${className}`} />;
}

/** An icon without text: the label serves screen readers and the tooltip. */
export function IconButton({
  label,
  className = '',
  look = 'quiet',
  size,
  ...rest
}: ButtonProps & { label: string }): ReactNode {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={`${buttonClass(look, size, true)} ${className}`}
    />
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

export function BackLink({ children, ...rest }: LinkProps & { children: ReactNode }): ReactNode {
  return (
    <Link
      {...rest}
      className="inline-flex h-6 shrink-0 items-center gap-1 rounded-md text-muted hover:text-text hover:underline"
    >
      <ArrowLeft size={16} aria-hidden /> {children}
    </Link>
  );
}
