"""Fixtures of the crypto tests: weak keys on every backend that runs here."""

import numpy as np
import pytest
from insecure_keys import insecure_key

from vflcrypto import kernels


@pytest.fixture(params=kernels.backends())
def backend(request):
    return request.param


@pytest.fixture
def key256(backend):
    return insecure_key("INSECURE_TEST_KEY_256", backend)


@pytest.fixture
def key(backend):
    """512 bits: what most tests need."""
    return insecure_key("INSECURE_TEST_KEY_512", backend)


@pytest.fixture
def other_key(backend):
    return insecure_key("INSECURE_OTHER_KEY_512", backend)


@pytest.fixture
def key1024(backend):
    return insecure_key("INSECURE_TEST_KEY_1024", backend)


@pytest.fixture
def key2048(backend):
    return insecure_key("INSECURE_TEST_KEY_2048", backend)


@pytest.fixture
def rng():
    """Seeded randomness for test data; never for keys or noise."""
    return np.random.default_rng(20240607)
