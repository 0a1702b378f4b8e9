// web/src/task/terminal-pane.tsx: a shell in the task's sandbox. The server keeps it open across page reloads.
// Invariant: output from the sandbox is only drawn. It cannot use the clipboard, create links or set the window title.
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { X } from 'lucide-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { socketAddress } from '../api/client.ts';
import { useShownTheme } from '../look/theme.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { PaneFrame } from './pane-frame.tsx';
import '@xterm/xterm/css/xterm.css';

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
    const restoreStyles = allowTerminalStyles(document);
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
    // The shell receives every other key, including Tab and Esc. Without this one, keyboard users could not leave the terminal.
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
      restoreStyles();
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
                ? 'Shell in the sandbox. Ctrl+` leaves the terminal.'
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
              Reopen
            </Button>
          ) : null}
          <IconButton ref={close} label="Close terminal" onClick={onClose}>
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

/**
 * The terminal library writes style elements and attributes, which the content security policy blocks. While a terminal is open,
 * document.createElement routes those styles through the CSS object model, which is allowed. Returns a function that restores it.
 */
function allowTerminalStyles(page: Document): () => void {
  const create = Document.prototype.createElement;
  const sheets: CSSStyleSheet[] = [];

  function styleElement(): HTMLElement {
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    page.adoptedStyleSheets = [...page.adoptedStyleSheets, sheet];
    const stand = create.call(page, 'span');
    stand.hidden = true;
    Object.defineProperty(stand, 'textContent', {
      set(css: string) {
        sheet.replaceSync(css);
      },
      get: () => '',
    });
    return stand;
  }
  function spanElement(): HTMLElement {
    const span = create.call(page, 'span');
    span.setAttribute = (name, value) => {
      if (name === 'style') span.style.cssText = value;
      else Element.prototype.setAttribute.call(span, name, value);
    };
    return span;
  }
  const value = (tag: string, options?: ElementCreationOptions): HTMLElement =>
    tag === 'style' ? styleElement() : tag === 'span' ? spanElement() : create.call(page, tag, options);
  Object.defineProperty(page, 'createElement', { value, configurable: true });
  return () => {
    Reflect.deleteProperty(page, 'createElement');
    page.adoptedStyleSheets = page.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
  };
}
