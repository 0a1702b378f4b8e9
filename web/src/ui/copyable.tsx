// web/src/ui/copyable.tsx: a command with a copy button.
import { Check, Copy } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { IconButton } from './button.tsx';

export function Copyable({ text }: { text: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div className="flex items-center gap-1 rounded-md bg-raised pl-3">
      <code className="min-w-0 grow py-1.5 font-mono text-sm wrap-anywhere">{text}</code>
      <IconButton label={copied ? 'Copied' : `Copy ${text}`} onClick={() => void copy()}>
        {copied ? <Check size={16} aria-hidden /> : <Copy size={16} aria-hidden />}
      </IconButton>
    </div>
  );
}
