// web/src/task/terminal-pane.tsx: a shell in the sandbox of the task. The server keeps it: after a reload it is still there.
// Invariant: what comes from inside is drawn and nothing else: no clipboard, no links, no title of the window.
import '@xterm/xterm/css/xterm.css';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { socketAddress } from '../api/client.ts';
import { useShownTheme } from '../look/theme.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { PaneFrame } from './pane-frame.tsx';
import { allowTerminalStyles } from './terminal-styles.ts';

const SCROLLBACK = 5000;

export default function TerminalPane({ task, onClose }: { task: ApiTaskDetail; onClose: () => void }): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  const [state, setState] = useState<'opening' | 'open' | 'closed'>('opening');
  const [why, setWhy] = useState('');
  const [tries, setTries] = useState(0);
  const theme = useShownTheme();
  useEffect(() => {
    if (box.current === null) return undefined;
    const place = box.current;
    const refuseStyles = allowTerminalStyles(document);
    const terminal = new Terminal({
      scrollback: SCROLLBACK,
      fontFamily: "'JetBrains Mono Variable', monospace",
      fontSize: 13,
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      screenReaderMode: true,
      theme: colours(),
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(place);
    // Everything else is for the shell, Tab and Esc too: without this one key nobody gets out who has no mouse.
    terminal.attachCustomKeyEventHandler((event) => {
      if (!event.ctrlKey || event.code !== 'Backquote') return true;
      if (event.type === 'keydown') close.current?.focus();
      event.preventDefault();
      return false;
    });
    const socket = new WebSocket(socketAddress(`/api/tasks/${task.id}/terminal`));
    socket.binaryType = 'arraybuffer';
    const resize = (): void => {
      fit.fit();
      if (socket.readyState === WebSocket.OPEN)
        socket.send(JSON.stringify({ resize: { cols: terminal.cols, rows: terminal.rows } }));
    };
    const watch = new ResizeObserver(resize);
    watch.observe(place);
    socket.addEventListener('open', () => {
      setState('open');
      resize();
      terminal.focus();
    });
    socket.addEventListener('message', ({ data }) => {
      if (data instanceof ArrayBuffer) terminal.write(new Uint8Array(data));
    });
    socket.addEventListener('close', ({ reason }) => {
      setState('closed');
      setWhy(reason);
    });
    const encoder = new TextEncoder();
    const typed = terminal.onData((text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text));
    });
    return () => {
      typed.dispose();
      watch.disconnect();
      socket.close();
      terminal.dispose();
      refuseStyles();
    };
  }, [task.id, tries, theme]);
  return (
    <PaneFrame
      title="Terminal"
      tools={
        <>
          <span className="text-sm text-muted">
            {state === 'opening'
              ? 'Opening…'
              : state === 'open'
                ? 'In the sandbox of this task. Keys go there; Ctrl ` comes back.'
                : `Closed. ${why}`}
          </span>
          {state === 'closed' ? (
            <Button
              size="small"
              onClick={() => {
                setState('opening');
                setTries(tries + 1);
              }}
            >
              Open again
            </Button>
          ) : null}
          <IconButton ref={close} label="Close the terminal" onClick={onClose}>
            <X size={16} aria-hidden />
          </IconButton>
        </>
      }
    >
      <div ref={box} className="h-full overflow-hidden bg-bg px-2 py-1" />
    </PaneFrame>
  );
}

function colours(): { background: string; foreground: string; cursor: string; selectionBackground: string } {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string): string => style.getPropertyValue(name).trim();
  return {
    background: token('--bg'),
    foreground: token('--text'),
    cursor: token('--accent'),
    selectionBackground: token('--line-strong'),
  };
}
