// The pages work without this script. It adds buttons that copy a text or show a password.
for (const button of document.querySelectorAll('button[data-copy]')) {
  const field = document.getElementById(button.dataset.copy);
  field.addEventListener('focus', () => field.select?.());
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(field.value ?? field.textContent);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
}

for (const button of document.querySelectorAll('button[data-show]')) {
  const field = document.getElementById(button.dataset.show);
  button.hidden = false;
  button.addEventListener('click', () => {
    const shown = field.type === 'password';
    field.type = shown ? 'text' : 'password';
    button.textContent = shown ? 'Hide password' : 'Show password';
    button.setAttribute('aria-pressed', String(shown));
  });
}

// On a phone the tabs scroll.
for (const tab of document.querySelectorAll('.tabs [aria-current]'))
  tab.scrollIntoView({ block: 'nearest', inline: 'center' });

// A chart is one Tab stop; the arrow keys move between columns.
for (const plot of document.querySelectorAll('.plot')) {
  const columns = [...plot.querySelectorAll('.column')];
  const choose = (chosen) => columns.forEach((one) => (one.tabIndex = one === chosen ? 0 : -1));
  choose(columns.at(-1));
  plot.addEventListener('focusin', ({ target }) => choose(target));
  plot.addEventListener('keydown', (event) => {
    const at = columns.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: columns.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    columns[to]?.focus();
  });
}
